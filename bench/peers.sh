#!/usr/bin/env bash
# Measures this library and Open MPI in turn, A B A B, and prints how they compare: -h explains.
set -euo pipefail
help() {
	cat <<'END'
bench/peers.sh [-n REPLICAS] [-c COLLECTIVE,...] [-s SIZE,...] [-t SECONDS] [-r ROUNDS] [-m METHOD] [-i IMPLEMENTATION] [-p oop|ip]
               [-transport inproc] [-batch] [-b COUNT] [-o FILE] [-f FILE]

Compares gclperf with the best tuned Open MPI on shared memory, float32 ADD, and with the floor: two pinned C threads in one address space.
About a minute for -n 2 on two cores that have nothing else to do; more for 8.

  -n  replicas, and MPI ranks: 2, 4, 8 (the floor is known for these) or another number                     (2)
  -c  some of allreduce,reducescatter,allgather,alltoall,broadcast                                          (all)
  -s  bytes of the larger buffer of a replica: 8,1K,64MiB                                                   (8,1K,32K,1M,16M,64M)
  -t  how long each point is timed, in seconds                                                              (0.02)
      With a replica on each core small messages want 0.3: at the start of a process the kernel has yet to place its threads, and our
      replicas take the processors to be crowded for the first 15 ms or so.
  -r  rounds; each measures ours, then the peer, then the floor                                             (3)
  -m  method of ours                                                                                        (auto)
  -i  implementation of ours                                                                                (Auto)
  -p  out of place or in place; a broadcast is always in place, as MPI's is                                 (oop)
  -batch  ours by a gcl.Batch, put together before, as a persistent collective of MPI is; else by single calls, as Open MPI's are always
  -b  how many ways to run Open MPI the rounds measure at each size; 8 is all                                (2)
  -o  write the tables as CSV into a file
  -f  write the floor into a file that gclperf -floor takes

Best tuned Open MPI is, at each size, the fastest of its shared-memory transport and UCX, both with huge pages, and for an all-reduce each of its six
algorithms too. A first quick pass over all of them chooses the best two (-b) at each size, and the rounds measure these. On a busy
machine it may choose badly: then -b 8.

Before and after each step the latency from core to core is measured (not during: that would take both cores away). On virtual machines it switches between
about 25, 55 and 240 ns for seconds at a time; what was measured at 150 ns and more is left out, unless there is nothing else.
END
}
fail() {
	echo "peers.sh: $*" >&2
	exit 2
}

n=2 collectives=allreduce,reducescatter,allgather,alltoall,broadcast sizes=8,1K,32K,1M,16M,64M secs=0.02 rounds=3
method=auto implementation=Auto place=oop transport=inproc batch='' best=2 csv='' floor=''
while [ $# -gt 0 ]; do
	case $1 in
	-h | -help | --help) help && exit ;;
	-batch)
		batch=-batch
		shift
		continue
		;;
	-n | -c | -s | -t | -r | -m | -i | -p | -b | -o | -f | -transport) [ $# -gt 1 ] || fail "$1 needs a value" ;;
	*) fail "unknown argument $1; -h explains" ;;
	esac
	case $1 in
	-n) n=$2 ;; -c) collectives=$2 ;; -s) sizes=$2 ;; -t) secs=$2 ;; -r) rounds=$2 ;; -m) method=$2 ;; -i) implementation=$2 ;;
	-p) place=$2 ;; -b) best=$2 ;; -o) csv=$2 ;; -f) floor=$2 ;; -transport) transport=$2 ;;
	esac
	shift 2
done
[[ $n =~ ^[0-9]+$ && $n -ge 2 ]] || fail "-n $n, want 2 or more"
[[ $rounds =~ ^[0-9]+$ && $rounds -ge 1 ]] || fail "-r $rounds, want 1 or more"
[[ $best =~ ^[0-9]+$ && $best -ge 1 ]] || fail "-b $best, want 1 or more"
[[ $secs =~ ^[0-9]*\.?[0-9]+$ ]] || fail "-t $secs, want seconds, such as 0.02"
[ "$transport" = inproc ] || fail "-transport $transport cannot be compared yet; there is inproc"
[ "$place" = oop ] || [ "$place" = ip ] || fail "-p $place, want oop or ip"
IFS=, read -ra collective <<<"$collectives"
for c in "${collective[@]}"; do
	case $c in allreduce | reducescatter | allgather | alltoall | broadcast) ;; *) fail "-c $c: there is no such collective" ;; esac
done
bytes=()
IFS=, read -ra size <<<"$sizes"
for s in "${size[@]}"; do
	[[ $s =~ ^([1-9][0-9]*)([KMG]?)(iB)?$ ]] || fail "-s $s, want something like 8, 1K or 64MiB"
	unit=1
	case ${BASH_REMATCH[2]} in K) unit=1024 ;; M) unit=$((1 << 20)) ;; G) unit=$((1 << 30)) ;; esac
	bytes+=($((BASH_REMATCH[1] * unit)))
done
mpisizes=$(IFS=, && echo "${bytes[*]}")
if ! command -v mpirun.openmpi >/dev/null || ! command -v mpicc.openmpi >/dev/null; then
	fail "there is no Open MPI to compare with. On Debian: apt-get install openmpi-bin libopenmpi-dev"
fi
command -v gcc >/dev/null || fail "there is no C compiler. On Debian: apt-get install gcc libc6-dev"

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT # which also cleans up
trap 'exit 143' TERM
raw=$work/raw.csv
(cd "$here/.." && go build -o "$work/gclperf" ./cmd/gclperf && go build -o "$work/report" ./bench/peers/report)

# The floor and the latency need two cores, the floor AVX-512 as well.
cores=$(nproc)
if [ "$cores" -ge 2 ]; then
	gcc -O2 -pthread -o "$work/ppmon" "$here/peers/ppmon.c"
	if [[ $n =~ ^(2|4|8)$ ]] && grep -qw avx512f /proc/cpuinfo; then
		gcc -O3 -march=native -pthread -o "$work/arlimit" "$here/peers/arlimit.c"
	fi
fi

# latency prints the nanoseconds from core to core now, 0 where it is not known. The least of three samples: one that met another program says nothing.
latency() {
	[ -x "$work/ppmon" ] || { echo 0 && return; }
	for _ in 1 2 3; do "$work/ppmon" 0; done | sort -g | head -1 | tr -d ' \n'
}

# mpi COLLECTIVES CONFIG SIZES SECONDS: CONFIG is shm+thp, ucx+thp or shm+thp:aALGORITHM.
mpi() {
	local names=${1/broadcast/bcast} alg=() at=$place
	[ "$names" = bcast ] && at=oop
	case $2 in *:a*) alg=(-a "${2##*:a}") ;; esac
	bash "$here/peers/run.sh" -n "$n" -c "$names" -l "${2%%:*}" -s "$3" -t "$4" -p "$at" -k 0 "${alg[@]}"
}

# quick COLLECTIVES CONFIG: a short measurement of one way to run Open MPI.
quick() {
	if lines=$(mpi "$1" "$2" "$mpisizes" 0.005 2>"$work/err"); then
		keep peer 0 0 <<<"$lines"
	else
		echo "# Open MPI as $2 does not run here: $(head -c 200 "$work/err" | tr '\n' ' ')"
	fi
}

# keep WHO ROUND NANOSECONDS puts lines in the raw file.
keep() { sed "s/^/$1,$2,$3,/" >>"$raw"; }

echo "# gclperf${batch:+ $batch} against Open MPI $(mpirun.openmpi --version | sed -n '1s/.* //p'), $n replicas on $cores cores, $(uname -m), $(date -u +%Y-%m-%dT%H:%MZ), load $(cut -d' ' -f1 /proc/loadavg)"

# A quick pass over all ways to run Open MPI. run.sh leaves a broadcast out in place.
started=$SECONDS
seen=$(latency)
for config in shm+thp ucx+thp; do
	quick "$collectives" "$config"
	if [ "$place" = ip ] && [[ $collectives = *broadcast* ]]; then quick broadcast "$config"; fi
done
if [[ $collectives = *allreduce* ]]; then
	for a in 1 2 3 4 5 6; do quick allreduce "shm+thp:a$a"; done
fi
[ -s "$raw" ] || fail "Open MPI does not run here"
"$work/report" -n "$n" -best "$best" "$raw" >"$work/plan"
rm "$raw"
echo "# quick pass over all ways to run Open MPI: $((SECONDS - started)) s, latencies $seen $(latency) ns; rounds measure"
sed 's/^/#   /' "$work/plan"

for ((r = 1; r <= rounds; r++)); do
	for c in "${collective[@]}"; do
		seen=$(latency)
		at=$place
		[ "$c" = broadcast ] && at=ip
		"$work/gclperf" -collective "$c" -n "$n" -transport "$transport" -method "$method" -implementation "$implementation" -sizes "$sizes" -time "${secs}s" -place "$at" ${batch:+"$batch"} -csv |
			sed 1d >"$work/ours"
		seen="$seen $(latency)"
		: >"$work/peer"
		while read -r config name list; do
			[ "$name" = "$c" ] || continue
			mpi "$c" "$config" "$list" "$secs" >>"$work/peer" </dev/null
		done <"$work/plan"
		: >"$work/floor"
		if [ "$c" = allreduce ] && [ -x "$work/arlimit" ]; then
			"$work/arlimit" "$secs" "$n" >"$work/floor.all"
			grep ",$place," "$work/floor.all" >"$work/floor"
		fi
		seen="$seen $(latency)"
		worst=$(tr ' ' '\n' <<<"$seen" | sort -g | tail -1)
		keep ours "$r" "$worst" <"$work/ours"
		keep peer "$r" "$worst" <"$work/peer"
		keep floor "$r" "$worst" <"$work/floor"
		echo "# round $r, $c: latencies $seen ns"
	done
done
echo "# $((SECONDS - started)) s in all"
echo
if [ -n "$floor" ]; then
	if [ -s "$work/floor.all" ]; then cp "$work/floor.all" "$floor"; else echo "# the floor is not known here: $floor is not written"; fi
fi
"$work/report" -n "$n" ${csv:+-o "$csv"} "$raw"
