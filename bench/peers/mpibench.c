// Copied from the project's shared notes on its peers; -f and -K are added.
// mpibench: collective micro-benchmark for any MPI.
// Build: mpicc.openmpi -O3 -march=native -o bin/mpibench.openmpi mpibench.c -lm
//
// Size convention is nccl-tests': S = bytes of the larger per-rank buffer
//   allreduce      S = sendbuf = recvbuf bytes               busbw = S/t * 2(n-1)/n
//   reducescatter  S = sendbuf bytes (recvbuf = S/n)         busbw = S/t * (n-1)/n
//   allgather      S = recvbuf bytes (sendbuf = S/n)         busbw = S/t * (n-1)/n
//   alltoall       S = sendbuf = recvbuf bytes (S/n per peer)busbw = S/t * (n-1)/n
//   bcast          S = buffer bytes                          busbw = S/t
// If S/n is not a whole number of elements it is rounded up (>=1 element per peer) and the
// true S is printed.  GB/s is 1e9 bytes/s.
//
// Three timing modes per point:
//   sync: MPI_Barrier before each op; per-op time on each rank; MAX over ranks per iteration;
//         median / min / p90 over iterations.
//   b2b : ops issued back to back in batches (nccl-tests style), batch time / ops, MAX over
//         ranks; median / min / p90 over batches.
//
//   dirty: as sync, and before the MPI_Barrier each rank rewrites its input with other values, which is not in the time.
//         There is none of the floor, nor of several tensors.
//
// -f FORM says what an op is:
//   blocking    (default) the blocking collective
//   nonblocking MPI_Iallreduce, MPI_Ireduce_scatter_block, MPI_Iallgather, MPI_Ialltoall or MPI_Ibcast, then MPI_Test until it is done
//   floor       the bytes of the collective by MPI_Isend, MPI_Irecv and MPI_Waitall, and no more: nothing is reduced, no part of a
//               process's own is copied, and results are not checked. With two patterns for a collective there is a line for each:
//                 allreduce  log2 n rounds of the whole buffer with one process (n a power of two); two rounds of an nth with each
//                 bcast      all from the root to each; an nth from the root to each and then from each to each
//                 others     one round of an nth with each
// -K TENSORS makes an op that many all-reduces of S bytes each, named 64xallreduce: blocking ones one after the other, nonblocking ones all
//   started before MPI_Waitall. The floor is then that of one all-reduce of all their bytes.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
#include <time.h>
#include <math.h>

static int np, me;
static double now(void){ struct timespec t; clock_gettime(CLOCK_MONOTONIC,&t); return t.tv_sec+1e-9*t.tv_nsec; }
static int cmpd(const void*a,const void*b){ double x=*(double*)a,y=*(double*)b; return x<y?-1:x>y; }
static void die(const char*m){ fprintf(stderr,"rank %d: %s\n",me,m); MPI_Abort(MPI_COMM_WORLD,1); }

enum {AR,RS,AG,A2A,BC};
static const char*cname[]={"allreduce","reducescatter","allgather","alltoall","bcast"};

static char *sb,*rb;
static int coll, isd, ip; static size_t cnt /*per-peer for RS/AG/A2A; total for AR/BC*/;
static MPI_Datatype dt; static size_t es;
enum {BLOCKING,NONBLOCKING,FLOOR};
static const char*fname[]={"blocking","nonblocking","floor"};
enum {MAXK=1024};
static int form, K=1, pattern; static MPI_Request*rq;

static void blocking(void){
  switch(coll){
  case AR: MPI_Allreduce(ip?MPI_IN_PLACE:sb,rb,(int)cnt,dt,MPI_SUM,MPI_COMM_WORLD);break;
  case RS: MPI_Reduce_scatter_block(ip?MPI_IN_PLACE:sb,rb,(int)cnt,dt,MPI_SUM,MPI_COMM_WORLD);break;
  case AG: if(ip) MPI_Allgather(MPI_IN_PLACE,0,dt,rb,(int)cnt,dt,MPI_COMM_WORLD); else MPI_Allgather(sb,(int)cnt,dt,rb,(int)cnt,dt,MPI_COMM_WORLD);break;
  case A2A: MPI_Alltoall(ip?MPI_IN_PLACE:sb,(int)cnt,dt,rb,(int)cnt,dt,MPI_COMM_WORLD);break;
  case BC: MPI_Bcast(rb,(int)cnt,dt,0,MPI_COMM_WORLD);break;
  }
}
// start begins the nonblocking collective, or that of tensor k.
static void start(int k){
  char*s=sb+k*cnt*es,*r=rb+k*cnt*es; MPI_Comm w=MPI_COMM_WORLD; int n=(int)cnt;
  switch(coll){
  case AR: MPI_Iallreduce(ip?MPI_IN_PLACE:s,r,n,dt,MPI_SUM,w,rq+k);break;
  case RS: MPI_Ireduce_scatter_block(ip?MPI_IN_PLACE:sb,rb,n,dt,MPI_SUM,w,rq);break;
  case AG: if(ip) MPI_Iallgather(MPI_IN_PLACE,0,dt,rb,n,dt,w,rq); else MPI_Iallgather(sb,n,dt,rb,n,dt,w,rq);break;
  case A2A: MPI_Ialltoall(ip?MPI_IN_PLACE:sb,n,dt,rb,n,dt,w,rq);break;
  case BC: MPI_Ibcast(rb,n,dt,0,w,rq);break;
  }
}
static void nonblocking(void){
  for(int k=0;k<K;k++) start(k);
  if(K>1){ MPI_Waitall(K,rq,MPI_STATUSES_IGNORE); return; }
  for(int done=0;!done;) MPI_Test(rq,&done,MPI_STATUS_IGNORE);
}
// with sends n elements from the place of each process of [first,last) in sb to it, where out is set, and receives as many into its place in rb,
// where in is set.
static void with(int first,int last,size_t n,int out,int in){
  int q=0; char*s=sb,*r=rb;
  for(int p=first;p<last;p++) if(p!=me&&in) MPI_Irecv(r+(last-first>1?p*n*es:0),(int)n,dt,p,0,MPI_COMM_WORLD,rq+q++);
  for(int p=first;p<last;p++) if(p!=me&&out) MPI_Isend(s+(last-first>1?p*n*es:0),(int)n,dt,p,0,MPI_COMM_WORLD,rq+q++);
  MPI_Waitall(q,rq,MPI_STATUSES_IGNORE);
}
enum {EACH,PAIRS,TWICE,STAR,SPREAD};
static void lowest(void){
  size_t all=cnt*K, nth=coll==AR||coll==BC?(all+np-1)/np:cnt;
  switch(pattern){
  case TWICE: with(0,np,nth,1,1); // and once more
  case EACH: with(0,np,nth,1,1);break;
  case PAIRS: for(int d=1;d<np;d*=2) with(me^d,(me^d)+1,all,1,1); break;
  case STAR: if(me){ with(0,1,all,0,1); break; }
    for(int p=1;p<np;p++) MPI_Isend(rb,(int)all,dt,p,0,MPI_COMM_WORLD,rq+p-1);
    MPI_Waitall(np-1,rq,MPI_STATUSES_IGNORE); break;
  case SPREAD: if(me) with(0,1,nth,0,1); else with(0,np,nth,1,0);
    with(0,np,nth,1,1); break;
  }
}
static void op(void){
  switch(form){
  case NONBLOCKING: nonblocking(); break;
  case FLOOR: lowest(); break;
  default: if(K==1){ blocking(); break; }
    for(int k=0;k<K;k++) MPI_Allreduce(ip?MPI_IN_PLACE:sb+k*cnt*es,rb+k*cnt*es,(int)cnt,dt,MPI_SUM,MPI_COMM_WORLD);
  }
}
static inline double gen(int r,size_t i){ return (double)((r+1)*(int)(1+i%5)+(int)(i%11)); }
static inline double gets_(void*p,size_t i){ return isd?((double*)p)[i]:((float*)p)[i]; }
static inline void sets_(void*p,size_t i,double v){ if(isd)((double*)p)[i]=v; else ((float*)p)[i]=(float)v; }
static size_t sendn(void){ return coll==AR||coll==BC?cnt*K: coll==AG?cnt:cnt*np; }
static size_t recvn(void){ return coll==AR||coll==BC?cnt*K: coll==RS?(ip?cnt*np:cnt):cnt*np; }

static void fill(int zero){
  size_t i;
  void*src = ip||coll==BC?rb:sb; size_t n=sendn();
  for(i=0;i<recvn();i++) sets_(rb,i,zero?0:-1);
  if(coll==BC){ for(i=0;i<cnt;i++) sets_(rb,i,zero?0:(me==0?gen(0,i):-1)); return; }
  if(ip&&coll==AG){ for(i=0;i<cnt;i++) sets_(rb,(size_t)me*cnt+i,zero?0:gen(me,i)); return; }
  for(i=0;i<n;i++) sets_(src,i,zero?0:gen(me,i));
}
static void check(const char*when){
  size_t i,bad=0; double e;
  for(i=0;i<(coll==RS?cnt:recvn());i++){
    e=0; int q;
    switch(coll){
    case AR: for(q=0;q<np;q++) e+=gen(q,i); break;
    case RS: for(q=0;q<np;q++) e+=gen(q,(size_t)me*cnt+i); break;
    case AG: e=gen((int)(i/cnt),i%cnt); break;
    case A2A: e=gen((int)(i/cnt),(size_t)me*cnt+i%cnt); break;
    case BC: e=gen(0,i); break; }
    if(gets_(rb,i)!=e){ if(!bad) fprintf(stderr,"rank %d %s %s: [%zu]=%g want %g\n",me,when,cname[coll],i,gets_(rb,i),e); bad++; }
  }
  if(bad) die("VERIFY FAILED");
}
// rewrite copies a block of small numbers, from another of them on at each turn, into the input, as cmd/gclperf -dirty does.
enum {PERIOD=4093};
static char block[PERIOD*sizeof(double)];
static void rewrite(int turn){
  if(coll==BC&&me) return;
  char*d=ip||coll==BC?rb:sb; if(ip&&coll==AG) d+=(size_t)me*cnt*es;
  size_t n=sendn()*es, len=PERIOD*es, at=turn%PERIOD*es;
  for(size_t k=0,m;k<n;k+=m,at=0){ m=n-k<len-at?n-k:len-at; memcpy(d+k,block+at,m); }
}
static FILE*out;
static void emit(const char*lib,const char*rep,size_t S,const char*mode,long iters,double*v,int nv){
  if(me) return;
  qsort(v,nv,sizeof(double),cmpd);
  double med=nv%2?v[nv/2]:0.5*(v[nv/2-1]+v[nv/2]), mn=v[0], p90=v[(int)(0.9*(nv-1))];
  double f=coll==AR?2.0*(np-1)/np:coll==BC?1.0:(double)(np-1)/np;
  double alg=S*K/med/1e9;
  char name[40]; if(K>1) snprintf(name,sizeof name,"%dx%s",K,cname[coll]); else strcpy(name,cname[coll]);
  fprintf(out,"%s,%d,%s,%s,%s,%zu,%s,%ld,%.3f,%.3f,%.3f,%.4f,%.4f,%s\n",lib,np,name,isd?"f64":"f32",ip?"ip":"oop",S,mode,iters,med*1e6,mn*1e6,p90*1e6,alg,alg*f,rep);
  fflush(out);
}
int main(int argc,char**argv){
  const char*lib="mpi",*rep="0",*of=NULL,*colls="allreduce,reducescatter,allgather,alltoall,bcast",*types="f32",*places="oop";
  const char*sizes="8,64,256,1024,4096,32768,65536,262144,1048576,4194304,16777216,67108864";
  double T=0.1; size_t maxS=0; int docheck=1; int modes=3;
  for(int i=1;i+1<argc;i+=2){
    if(!strcmp(argv[i],"-l"))lib=argv[i+1]; else if(!strcmp(argv[i],"-r"))rep=argv[i+1]; else if(!strcmp(argv[i],"-o"))of=argv[i+1];
    else if(!strcmp(argv[i],"-c"))colls=argv[i+1]; else if(!strcmp(argv[i],"-t"))types=argv[i+1]; else if(!strcmp(argv[i],"-p"))places=argv[i+1];
    else if(!strcmp(argv[i],"-s"))sizes=argv[i+1]; else if(!strcmp(argv[i],"-T"))T=atof(argv[i+1]); else if(!strcmp(argv[i],"-k"))docheck=atoi(argv[i+1]);
    else if(!strcmp(argv[i],"-m"))modes=atoi(argv[i+1]); // the sum of 1 sync, 2 b2b, 4 dirty
    else if(!strcmp(argv[i],"-K"))K=atoi(argv[i+1]);
    else if(!strcmp(argv[i],"-f")){ for(form=0;form<=FLOOR&&strcmp(argv[i+1],fname[form]);form++); }
  }
  MPI_Init(&argc,&argv); MPI_Comm_size(MPI_COMM_WORLD,&np); MPI_Comm_rank(MPI_COMM_WORLD,&me);
  if(form>FLOOR) die("-f: blocking, nonblocking or floor");
  if(K<1||K>MAXK||(K>1&&strcmp(colls,"allreduce"))) die("-K: 1 to 1024 tensors, of -c allreduce");
  if(form==FLOOR) docheck=0;
  rq=malloc(sizeof(MPI_Request)*(MAXK+2*np));
  out=stdout; if(of&&!me){ out=fopen(of,"a"); if(!out) die("open"); }
  size_t ss[64]; int ns=0; { char*d=strdup(sizes),*p; for(p=strtok(d,",");p;p=strtok(NULL,",")){ ss[ns]=strtoull(p,0,10); if(ss[ns]>maxS)maxS=ss[ns]; ns++; } }
  size_t cap=maxS*K+4096+(size_t)np*64;
  if(posix_memalign((void**)&sb,4096,cap)||posix_memalign((void**)&rb,4096,cap)) die("mem");
  memset(sb,0,cap); memset(rb,0,cap);
  const int MAXIT=200000; double*v=malloc(sizeof(double)*MAXIT),*w=malloc(sizeof(double)*MAXIT);
  for(int c=0;c<5;c++){ if(!strstr(colls,cname[c])) continue;
   for(isd=0;isd<2;isd++){ if(!strstr(types,isd?"f64":"f32")) continue;
    for(ip=0;ip<2;ip++){ if(!strstr(places,ip?"ip":"oop")) continue; if(ip&&c==BC) continue;
     for(int k=0;k<ns;k++) for(int alt=0;alt<(form==FLOOR?2:1);alt++){
      if(alt&&(c==RS||c==AG||c==A2A||(c==AR&&(np&(np-1)))||(c==BC&&np==2))) continue;
      pattern=c==AR?(alt?PAIRS:TWICE):c==BC?(alt?SPREAD:STAR):EACH;
      coll=c; es=isd?8:4; dt=isd?MPI_DOUBLE:MPI_FLOAT;
      size_t el=ss[k]/es; if(el==0) el=1;
      if(coll==AR||coll==BC) cnt=el; else { cnt=(el+np-1)/np; }
      size_t S=(coll==AR||coll==BC?cnt:cnt*np)*es;
      MPI_Barrier(MPI_COMM_WORLD);
      if(docheck){ fill(0); MPI_Barrier(MPI_COMM_WORLD); op(); check("before"); }
      fill(ip); MPI_Barrier(MPI_COMM_WORLD);
      // warm up + estimate
      op(); double t0=now(); op(); double est=now()-t0; MPI_Allreduce(MPI_IN_PLACE,&est,1,MPI_DOUBLE,MPI_MAX,MPI_COMM_WORLD);
      int wn=est>0.02?1:(int)(0.02/est); if(wn>2000)wn=2000; if(wn<1)wn=1;
      t0=now(); for(int i=0;i<wn;i++){ MPI_Barrier(MPI_COMM_WORLD); op(); } est=(now()-t0)/wn;
      MPI_Allreduce(MPI_IN_PLACE,&est,1,MPI_DOUBLE,MPI_MAX,MPI_COMM_WORLD);
      if(modes&1){
        int it=(int)(T/est); int lo=est>0.25?3:7; if(it<lo)it=lo; if(it>MAXIT)it=MAXIT;
        for(int i=0;i<it;i++){ MPI_Barrier(MPI_COMM_WORLD); double a=now(); op(); v[i]=now()-a; }
        MPI_Reduce(v,w,it,MPI_DOUBLE,MPI_MAX,0,MPI_COMM_WORLD);
        emit(lib,rep,S,"sync",it,w,it);
      }
      if(modes&2){
        MPI_Barrier(MPI_COMM_WORLD);
        t0=now(); for(int i=0;i<wn;i++) op(); est=(now()-t0)/wn; MPI_Allreduce(MPI_IN_PLACE,&est,1,MPI_DOUBLE,MPI_MAX,MPI_COMM_WORLD);
        double bt=T/20; if(bt<0.001)bt=0.001;
        int m=(int)(bt/est); if(m<1)m=1; if(m>20000)m=20000;
        int nb=(int)(T/(m*est)); int lb=est>0.25?3:5; if(nb<lb)nb=lb; if(nb>200)nb=200;
        for(int b=0;b<nb;b++){ MPI_Barrier(MPI_COMM_WORLD); double a=now(); for(int i=0;i<m;i++) op(); v[b]=(now()-a)/m; }
        MPI_Reduce(v,w,nb,MPI_DOUBLE,MPI_MAX,0,MPI_COMM_WORLD);
        emit(lib,rep,S,"b2b",(long)nb*m,w,nb);
      }
      if((modes&4)&&form!=FLOOR&&K==1){
        for(size_t i=0;i<PERIOD;i++) sets_(block,i,(double)((me+1)*(int)(1+i%5)+(int)(i%11)));
        for(int i=0;i<2;i++){ t0=now(); rewrite(i); MPI_Barrier(MPI_COMM_WORLD); op(); est=now()-t0; }
        MPI_Allreduce(MPI_IN_PLACE,&est,1,MPI_DOUBLE,MPI_MAX,MPI_COMM_WORLD);
        int it=(int)(T/est); if(it<7)it=7; if(it>MAXIT)it=MAXIT;
        for(int i=0;i<it;i++){ rewrite(i); MPI_Barrier(MPI_COMM_WORLD); double a=now(); op(); v[i]=now()-a; }
        MPI_Reduce(v,w,it,MPI_DOUBLE,MPI_MAX,0,MPI_COMM_WORLD);
        emit(lib,rep,S,"dirty",it,w,it);
      }
      if(docheck){ fill(0); MPI_Barrier(MPI_COMM_WORLD); op(); check("after"); }
     }}}}
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize(); return 0;
}
