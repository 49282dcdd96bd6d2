// Copied from the project's shared notes on its peers; the sleep after the last sample is left out, so that ppmon 0 takes one sample and ends.
// ppmon SECS: core-to-core spin ping-pong one-way latency, one sample per 0.25 s, to expose vCPU placement modes
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sched.h>
#include <time.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <stdatomic.h>
typedef struct { _Alignas(128) atomic_int a; _Alignas(128) atomic_int b; } SH;
static double now(void){ struct timespec t; clock_gettime(CLOCK_MONOTONIC,&t); return t.tv_sec+1e-9*t.tv_nsec; }
static void pin(int c){ cpu_set_t s; CPU_ZERO(&s); CPU_SET(c,&s); sched_setaffinity(0,sizeof s,&s); }
int main(int c,char**v){ double secs=c>1?atof(v[1]):30; SH*h=mmap(0,4096,3,MAP_SHARED|MAP_ANONYMOUS,-1,0);
 pid_t p=fork(); if(!p){ pin(1); for(int i=1;;i++){ int x; while((x=atomic_load_explicit(&h->a,memory_order_acquire))<i&&x>=0); if(x<0) _exit(0); atomic_store_explicit(&h->b,i,memory_order_release);} }
 pin(0); double e=now()+secs; int n=0; for(;;){ double t=now(); for(int k=0;k<100000;k++){ n++; atomic_store_explicit(&h->a,n,memory_order_release); while(atomic_load_explicit(&h->b,memory_order_acquire)<n); } printf("%.1f ",(now()-t)/100000/2*1e9); fflush(stdout); if(now()>=e) break; usleep(240000); }
 atomic_store(&h->a,-1); waitpid(p,0,0); printf("\n"); return 0; }
