#!/usr/bin/env bash
# Measures Open MPI on this machine, as the peer to beat, with the same sizes and definitions as cmd/gclperf.
# Copied from the project's shared notes on its peers; -k is added.
#   run.sh [-n RANKS] [-c COLLECTIVES] [-s BYTES,BYTES] [-l shm|shm+thp|ucx+thp|tcp|tcp+thp] [-t SECONDS] [-p oop|ip] [-a ALGORITHM] [-k 0|1]
# ALGORITHM (all-reduce, 1..6: linear, nonoverlapping, recursive doubling, ring, segmented ring, Rabenseifner) overrides Open MPI's own choice;
# "best tuned" is the fastest of -l shm+thp, -l ucx+thp and -l shm+thp -a 1..6 at each size.
# -k 0 leaves out the check of results, which takes longer than the measurement.
# Prints CSV: lib,np,coll,dtype,place,bytes,mode,iters,med_us,min_us,p90_us,algbw_GBps,busbw_GBps
# Needs Debian's openmpi-bin and libopenmpi-dev. Loopback only.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
n=2 coll=allreduce sizes=8,1024,32768,1048576,16777216,67108864 lib=shm+thp secs=0.1 place=oop alg='' check=1
while getopts n:c:s:l:t:p:a:k: o; do
  case $o in n) n=$OPTARG ;; c) coll=$OPTARG ;; s) sizes=$OPTARG ;; l) lib=$OPTARG ;; t) secs=$OPTARG ;; p) place=$OPTARG ;; a) alg=$OPTARG ;; k) check=$OPTARG ;; *) exit 2 ;; esac
done
command -v mpicc.openmpi >/dev/null || { echo "install openmpi-bin and libopenmpi-dev first" >&2; exit 2; }
work=$(dirname "$(mktemp -u)")/gcl-peers; mkdir -p "$work"
[ "$work/mpibench" -nt "$here/mpibench.c" ] || mpicc.openmpi -O3 -march=native -Wno-unused-result -o "$work/mpibench" "$here/mpibench.c" -lm
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_btl_tcp_if_include=lo
args=(); [ "$n" -gt 2 ] && args+=(--oversubscribe)
case $lib in *+thp) # keep freed buffers mapped, and huge pages: what a well-tuned job does
  for v in MALLOC_TOP_PAD_=536870912 MALLOC_MMAP_THRESHOLD_=2147483648 MALLOC_TRIM_THRESHOLD_=4294967296 GLIBC_TUNABLES=glibc.malloc.hugetlb=1; do args+=(-x "$v"); done ;;
esac
case $lib in
  ucx*) args+=(--mca pml ucx --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any -x "UCX_TLS=posix,sysv,cma,self") ;;
  tcp*) args+=(--mca btl "tcp,self") ;;
esac
[ -n "$alg" ] && args+=(--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm "$alg")
out=$(mktemp); trap 'rm -f "$out"' EXIT
(cd "$work" && mpirun.openmpi "${args[@]}" -np "$n" ./mpibench -l "openmpi-$lib${alg:+:a$alg}" -o "$out" -r 1 -m 2 -T "$secs" -c "$coll" -t f32 -p "$place" -s "$sizes" -k "$check") >/dev/null
cut -d, -f1-13 "$out"
