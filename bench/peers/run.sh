#!/usr/bin/env bash
# Measures Open MPI on this machine, as the peer to beat, with the same sizes and definitions as cmd/gclperf. Or MPICH: -L mpich.
# Copied from the project's shared notes on its peers; -k, -L, -f, -K, -b, -m and -- are added.
#   run.sh [-n RANKS] [-c COLLECTIVES] [-s BYTES,BYTES] [-l shm|shm+thp|ucx+thp|tcp|tcp+thp] [-t SECONDS] [-p oop|ip] [-a ALGORITHM] [-k 0|1]
#          [-L openmpi|mpich] [-f blocking|nonblocking|floor] [-K TENSORS] [-b core|none] [-m MODES]
#   run.sh [-n RANKS] [-l ...] [-L ...] [-b ...] -- COMMAND...
# The second form runs a command under the same mpirun, with the same settings.
# ALGORITHM (all-reduce, 1..6: linear, nonoverlapping, recursive doubling, ring, segmented ring, Rabenseifner) overrides Open MPI's own choice;
# "best tuned" is the fastest of -l shm+thp, -l ucx+thp and -l shm+thp -a 1..6 at each size.
# -k 0 leaves out the check of results, which takes longer than the measurement.
# -L mpich: -l shm or shm+thp, no -a; MPICH itself chooses what its processes talk over.
# -f, -K: what is measured, as mpibench.c explains. With -f the first field of a line is its value, else what ran.
# -m sums up what is timed: 1 each call after a barrier, 2 calls back to back (without -m), 4 each call after a barrier before which all
#   ranks have rewritten their inputs.
# -b binds each rank to a core, or none to any. Not given, mpirun decides: Open MPI binds two ranks to a core each.
# Prints CSV: lib,np,coll,dtype,place,bytes,mode,iters,med_us,min_us,p90_us,algbw_GBps,busbw_GBps
# Needs Debian's openmpi-bin and libopenmpi-dev, or mpich and libmpich-dev. Loopback only.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
n=2 coll=allreduce sizes=8,1024,32768,1048576,16777216,67108864 lib=shm+thp secs=0.1 place=oop alg='' check=1
mpi=openmpi form='' tensors=1 bind='' modes=2
while getopts n:c:s:l:t:p:a:k:L:f:K:b:m: o; do
  case $o in n) n=$OPTARG ;; c) coll=$OPTARG ;; s) sizes=$OPTARG ;; l) lib=$OPTARG ;; t) secs=$OPTARG ;; p) place=$OPTARG ;; a) alg=$OPTARG ;; k) check=$OPTARG ;;
    L) mpi=$OPTARG ;; f) form=$OPTARG ;; K) tensors=$OPTARG ;; b) bind=$OPTARG ;; m) modes=$OPTARG ;; *) exit 2 ;; esac
done
shift $((OPTIND - 1))
case $modes in [1-7]) ;; *) echo "run.sh: -m $modes, want 1 to 7" >&2; exit 2 ;; esac
case $mpi in openmpi) packages="openmpi-bin and libopenmpi-dev" ;; mpich) packages="mpich and libmpich-dev" ;; *) echo "run.sh: -L $mpi, want openmpi or mpich" >&2; exit 2 ;; esac
case $mpi,$lib,$alg in mpich,shm, | mpich,shm+thp, | openmpi,*) ;; *) echo "run.sh: -L mpich goes with -l shm or shm+thp, and without -a" >&2; exit 2 ;; esac
if ! command -v "mpicc.$mpi" >/dev/null || ! command -v "mpirun.$mpi" >/dev/null; then echo "install $packages first" >&2; exit 2; fi
args=() env=()
if [ "$mpi" = openmpi ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_btl_tcp_if_include=lo
  [ "$n" -gt 2 ] && args+=(--oversubscribe)
  [ -n "$bind" ] && args+=(--bind-to "$bind")
elif [ -n "$bind" ]; then
  args+=(-bind-to "$bind")
fi
case $lib in *+thp) # keep freed buffers mapped, and huge pages: what a well-tuned job does
  for v in MALLOC_TOP_PAD_=536870912 MALLOC_MMAP_THRESHOLD_=2147483648 MALLOC_TRIM_THRESHOLD_=4294967296 GLIBC_TUNABLES=glibc.malloc.hugetlb=1 MALLOC_ARENA_MAX=1; do
    if [ "$mpi" = openmpi ]; then args+=(-x "$v"); else env+=("$v"); fi
  done ;;
esac
[ ${#env[@]} -gt 0 ] && args+=(-np "$n" env "${env[@]}") || args+=(-np "$n")
case $lib in
  ucx*) args=(--mca pml ucx --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any -x "UCX_TLS=posix,sysv,cma,self" "${args[@]}") ;;
  tcp*) args=(--mca pml ob1 --mca btl "tcp,self" "${args[@]}") ;;
esac
[ -n "$alg" ] && args=(--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm "$alg" "${args[@]}")
if [ $# -gt 0 ]; then exec "mpirun.$mpi" "${args[@]}" "$@"; fi
work=$(dirname "$(mktemp -u)")/gcl-peers; mkdir -p "$work"
program=$work/mpibench; [ "$mpi" = openmpi ] || program=$program.$mpi
# GCC takes MPICH's MPI_STATUSES_IGNORE for an array without elements
[ "$program" -nt "$here/mpibench.c" ] || "mpicc.$mpi" -O3 -march=native -Wno-unused-result -Wno-stringop-overflow -o "$program" "$here/mpibench.c" -lm
out=$(mktemp); trap 'rm -f "$out"' EXIT
(cd "$work" && "mpirun.$mpi" "${args[@]}" "$program" -l "${form:-$mpi-$lib${alg:+:a$alg}}" -o "$out" -r 1 -m "$modes" -T "$secs" -c "$coll" -t f32 -p "$place" -s "$sizes" -k "$check" \
  -f "${form:-blocking}" -K "$tensors") >/dev/null
cut -d, -f1-13 "$out"
