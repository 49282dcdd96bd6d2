// arlimit: floor for an in-process f32 sum all-reduce of R buffers on 2 cores: two pinned threads, each reduces half of the
// index range, reading all R inputs and writing all R outputs; one spin barrier at entry and one at exit.
// Copied from the project's shared notes on its peers. The second argument is added: only so many buffers, only huge pages.
// usage: arlimit [secs [R]] ; CSV: arlimit,R,bytes,place,store,thp,med_us,min_us,algbw,busbw
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <sys/mman.h>
#include <immintrin.h>
#include <stdatomic.h>
static double now(void){ struct timespec t; clock_gettime(CLOCK_MONOTONIC,&t); return t.tv_sec+1e-9*t.tv_nsec; }
static struct { _Alignas(128) atomic_int c; _Alignas(128) atomic_int g; } B;
static inline void bar(void){ int g=atomic_load_explicit(&B.g,memory_order_acquire); if(atomic_fetch_add(&B.c,1)==1){ atomic_store_explicit(&B.c,0,memory_order_relaxed); atomic_store_explicit(&B.g,g+1,memory_order_release);} else while(atomic_load_explicit(&B.g,memory_order_acquire)==g) _mm_pause(); }
static float*in[8],*out[8]; static int R; static size_t n; static int nt,ip; static volatile int go; static long iters; static double secs; static int nb; static double v[1000];
static inline __attribute__((always_inline)) void body(int RR,size_t lo,size_t hi,int NT,float**o){
  size_t i; size_t m=lo+((hi-lo)&~(size_t)15);
  for(i=lo;i<m;i+=16){ __m512 s=_mm512_loadu_ps(in[0]+i); for(int r=1;r<RR;r++) s=_mm512_add_ps(s,_mm512_loadu_ps(in[r]+i)); for(int r=0;r<RR;r++) if(NT) _mm512_stream_ps(o[r]+i,s); else _mm512_storeu_ps(o[r]+i,s); }
  for(;i<hi;i++){ float s=in[0][i]; for(int r=1;r<RR;r++) s+=in[r][i]; for(int r=0;r<RR;r++) o[r][i]=s; }
  if(NT) _mm_sfence();
}
static void op(int t){ bar(); size_t h=n/2&~(size_t)15, lo=t?h:0,hi=t?n:h; float**o=ip?in:out;
  switch(R*2+nt){ case 4: body(2,lo,hi,0,o);break; case 5: body(2,lo,hi,1,o);break; case 8: body(4,lo,hi,0,o);break; case 9: body(4,lo,hi,1,o);break; case 16: body(8,lo,hi,0,o);break; case 17: body(8,lo,hi,1,o);break; } bar(); }
static void*th(void*p){ int t=(int)(long)p; cpu_set_t s; CPU_ZERO(&s); CPU_SET(t,&s); pthread_setaffinity_np(pthread_self(),sizeof s,&s);
  for(int i=0;i<3;i++) op(t); static double est; static volatile int ready; if(!t) ready=0; bar(); double a=now(); for(int i=0;i<3;i++) op(t); if(!t){ est=(now()-a)/3; double bt=secs/20; if(bt<1e-3)bt=1e-3; iters=(long)(bt/est); if(iters<1)iters=1; nb=(int)(secs/(iters*est)); if(nb<7)nb=7; if(nb>900)nb=900; } bar();
  for(int b=0;b<nb;b++){ bar(); double x=now(); for(long i=0;i<iters;i++) op(t); if(!t) v[b]=(now()-x)/iters; } return 0; }
static int cmp(const void*a,const void*b){ double x=*(double*)a,y=*(double*)b; return x<y?-1:x>y; }
int main(int c,char**a){ secs=c>1?atof(a[1]):0.1; int only=c>2?atoi(a[2]):0; size_t sz[]={8,1024,32768,262144,1<<20,4<<20,16<<20,64<<20}; size_t cap=64<<20;
 for(int thp=only>0;thp<2;thp++){ for(int r=0;r<8;r++) for(int k=0;k<2;k++){ char*p=mmap(0,cap+(4<<20),3,MAP_PRIVATE|MAP_ANONYMOUS,-1,0); p=(char*)(((size_t)p+(2<<20)-1)&~(size_t)((2<<20)-1)); if(thp) madvise(p,cap+(2<<20),MADV_HUGEPAGE); memset(p,0,cap); if(k) out[r]=(float*)p; else in[r]=(float*)p; }
  // staggering not applied: all buffers are 2 MiB aligned
  for(R=2;R<=8;R*=2) for(int k=0;k<8&&(!only||only==R);k++) for(ip=0;ip<2;ip++) for(nt=0;nt<2;nt++){ n=sz[k]/4; if(nt&&sz[k]<262144) continue; for(int r=0;r<R;r++) for(size_t i=0;i<n;i++) in[r][i]=ip?0:r+1;
   pthread_t t[2]; for(long j=0;j<2;j++) pthread_create(&t[j],0,th,(void*)j); for(int j=0;j<2;j++) pthread_join(t[j],0);
   if(!ip) for(int r=0;r<R;r++) for(size_t i=0;i<n;i++) if(out[r][i]!=R*(R+1)/2){ printf("BAD\n"); return 1; }
   qsort(v,nb,8,cmp); double md=v[nb/2]; printf("arlimit,%d,%zu,%s,%s,%s,%.3f,%.3f,%.3f,%.3f\n",R,sz[k],ip?"ip":"oop",nt?"nt":"reg",thp?"thp":"4k",md*1e6,v[0]*1e6,sz[k]/md/1e9,sz[k]/md/1e9*2*(R-1)/R); fflush(stdout); } }
 return 0; }
