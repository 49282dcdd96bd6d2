#!/usr/bin/env bash
# Measures and draws one of the pictures of docs/design/performance.md: -h explains.
set -euo pipefail
help() {
	cat <<'END'
bench/pictures.sh [-n REPLICAS] [-c COLLECTIVE,...] [-m METHOD,...] [-i IMPLEMENTATION,...] [-s SIZE,...] [-t SECONDS] [-p oop|ip] [-f FILE] [-o FILE]

Draws time and bus bandwidth against size, a line for each method and implementation, float32 ADD. An all-reduce has the floor beside it: pinned C
threads in one address space, one for each replica or, if there are fewer, one for each core; the picture says how many. The floor is measured first,
if there are two cores, AVX-512 and a C compiler, unless -f has it.

  -n  replicas                                                            (8)
  -c  some of allreduce,reducescatter,allgather,alltoall,broadcast or all (allreduce)
  -m  methods                                                             (auto,clockwise_ring,recursive_doubling)
  -i  some of Auto,Syncless,Syncful                                       (Syncless,Syncful)
  -s  bytes of the larger buffer of a replica: 8,1K,64MiB                 (8,64,1K,8K,32K,256K,1M,4M,16M,64M)
  -t  how long each point is timed, in seconds                            (0.05)
  -p  out of place or in place                                            (oop)
  -f  the floor, as bench/peers.sh -f writes it
  -o  the picture                                                         (docs/COLLECTIVESn.svg, such as docs/allreduce8.svg)
END
}
fail() {
	echo "pictures.sh: $*" >&2
	exit 2
}

n=8 collectives=allreduce methods=auto,clockwise_ring,recursive_doubling implementations=Syncless,Syncful
sizes=8,64,1K,8K,32K,256K,1M,4M,16M,64M secs=0.05 place=oop floor='' svg=''
while [ $# -gt 0 ]; do
	case $1 in
	-h | -help | --help) help && exit ;;
	-n | -c | -m | -i | -s | -t | -p | -f | -o) [ $# -gt 1 ] || fail "$1 needs a value" ;;
	*) fail "unknown argument $1; -h explains" ;;
	esac
	case $1 in
	-n) n=$2 ;; -c) collectives=$2 ;; -m) methods=$2 ;; -i) implementations=$2 ;; -s) sizes=$2 ;; -t) secs=$2 ;;
	-p) place=$2 ;; -f) floor=$2 ;; -o) svg=$2 ;;
	esac
	shift 2
done
[[ $n =~ ^[0-9]+$ ]] || fail "-n $n, want a number" # gclperf checks the rest
[[ $secs =~ ^[0-9]*\.?[0-9]+$ ]] || fail "-t $secs, want seconds, such as 0.05"
[ -z "$floor" ] || [ -r "$floor" ] || fail "-f $floor cannot be read"

here=$(cd "$(dirname "$0")" && pwd)
: "${svg:=$here/../docs/${collectives//,/-}$n.svg}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT # which also cleans up
trap 'exit 143' TERM
(cd "$here/.." && go build -o "$work/gclperf" ./cmd/gclperf)
run=("$work/gclperf" -n "$n" -collective "$collectives" -method "$methods" -implementation "$implementations" -place "$place")
"${run[@]}" -sizes 8 -iters 1 >"$work/first" || exit # refuses what is wrong before the floor is measured

if [[ -z $floor && $collectives =~ allreduce|all$ ]]; then
	if [[ $n =~ ^(2|4|8)$ && $(nproc) -ge 2 ]] && grep -qw avx512f /proc/cpuinfo && command -v gcc >/dev/null; then
		gcc -O3 -march=native -pthread -o "$work/arlimit" "$here/peers/arlimit.c"
		floor=$work/floor.csv
		"$work/arlimit" "$secs" "$n" "$sizes" >"$floor"
	else
		echo "# the floor is not known: it needs 2, 4 or 8 replicas, two cores, AVX-512 and gcc"
	fi
fi
"${run[@]}" -sizes "$sizes" -time "${secs}s" ${floor:+-floor "$floor"} -svg "$svg"
echo "# $svg is drawn"
