#!/usr/bin/env bash
# Measures this library and MPI in turn, A B A B, and prints how they compare: -h explains.
set -euo pipefail
help() {
	cat <<'END'
bench/peers.sh [-n REPLICAS] [-c COLLECTIVE,...] [-s SIZE,...] [-t SECONDS] [-r ROUNDS] [-m METHOD] [-i IMPLEMENTATION] [-p oop|ip]
               [-transport inproc|shm|tcp] [-batch] [-sync] [-clean] [-b COUNT] [-o FILE] [-f FILE]
bench/peers.sh -transport mpi [-n REPLICAS] [-c COLLECTIVE,...] [-s SIZE,...] [-t SECONDS] [-r ROUNDS] [-m METHOD] [-i IMPLEMENTATION]
               [-p oop|ip] [-batch] [-sync] [-clean] [-o FILE] [-mpi openmpi|mpich] [-l SETTINGS] [-bind core|none] [-many COUNTxSIZE,...]

Compares gclperf with the best tuned Open MPI on shared memory, float32 ADD, and with the floor: pinned C threads in one address space, one for
each replica or, if there are fewer, one for each core. With -transport shm ours are processes that share memory, in which their buffers are
(gcl.Alloc); Open MPI and the floor are the same. With -transport tcp the floor is C processes that send and receive the bytes of a
collective over the same sockets, and no more.
With -transport mpi ours goes over MPI itself, and is compared with the collectives of that MPI called from C; see below.
A second table of each collective has, for ours and for MPI, the time of a call after every replica has rewritten its input (dirty) beside that of
calls on the same inputs again and again (clean), which is that of the first table. Dirty calls are timed one by one after a barrier, without the
rewriting, and clean ones back to back: -sync times the clean ones one by one too. The floor, and several tensors
in one call, are only clean and back to back.

About two minutes for -n 2 on two cores that have nothing else to do; more for 8.

  -n  replicas, and MPI ranks: 2, 4, 8 (the floor is known for these) or another number                     (2)
  -c  some of allreduce,reducescatter,allgather,alltoall,broadcast                                          (all)
  -s  bytes of the larger buffer of a replica: 8,1K,64MiB                                                   (8,1K,32K,1M,16M,64M)
  -t  how long each point is timed, in seconds                                                              (0.02)
      With a replica on each core small messages want 0.3: at the start of a process the kernel has yet to place its threads.
  -r  rounds; each measures ours, then the peer, then the floor                                             (3)
  -m  method of ours                                                                                        (auto)
  -i  implementation of ours                                                                                (Auto)
  -p  out of place or in place; a broadcast is always in place, as MPI's is                                 (oop)
  -transport  inproc: ours as goroutines, Open MPI over shared memory. shm: ours as processes, Open MPI over shared memory.
      tcp: ours as processes, once over TCP and once over unix sockets, Open MPI over TCP. mpi: ours over MPI, and MPI from C (inproc)
  -batch  ours by a gcl.Batch, put together before, as a persistent collective of MPI is; else by single calls, as Open MPI's are always
  -sync   each clean call by itself after a barrier, as the dirty ones
  -clean  no dirty calls and no second table, in half the time
  -b  how many ways to run Open MPI the rounds measure at each size; 8 is all                                (2)
  -o  write the tables as CSV into a file
  -f  write the floor into a file that gclperf -floor takes

Best tuned Open MPI is, at each size, the fastest of its shared-memory transport and UCX, both with huge pages, and for an all-reduce each of its six
algorithms too. A first quick pass over all of them chooses the best two (-b) at each size, and the rounds measure these. On a busy
machine it may choose badly: then -b 8.

With -transport mpi a round measures five programs in turn for each collective, under the same mpirun with the same settings and binding:

  ours    gclperf -transport mpi by the method -m: our schedules over MPI's point to point
  native  gclperf -transport mpi -method native: MPI's nonblocking collective, after our agreement
  C nb    mpibench.c: the same nonblocking collective from C (MPI_Iallreduce, ...), then MPI_Test until it is done
  C bl    mpibench.c: the blocking collective from C (MPI_Allreduce, ...)
  floor   mpibench.c: the bytes of the collective by MPI_Isend, MPI_Irecv and MPI_Waitall and no more; the faster of two patterns (mpibench.c has
          the list). ours/floor is what a schedule, its reductions and our protocol cost on top of point to point. A better pattern may beat it.

native/nb is to be at most 1.15 from 32 KiB on, and native-nb at most 0.5 us below. ours/bl below 1 is where our schedules beat MPI's.
A line 64xallreduce is 64 tensors: ours are all-reduced in one call (gcl.AllReduceManyTo); native is one call too, which starts MPI's collective
for each, one after the other; C nb starts 64 MPI_Iallreduce and then waits for all; C bl makes 64 MPI_Allreduce one after the other; the
floor is that of one all-reduce of all the bytes. Sizes and times: bytes of one tensor, microseconds for all 64.

  -mpi   openmpi or mpich, Debian's packages of which stand side by side                                   (openmpi)
  -l     settings of mpirun. Open MPI: shm, shm+thp, ucx+thp, tcp, tcp+thp. MPICH: shm, shm+thp            (shm+thp)
         +thp: huge pages, and freed memory stays mapped. Those of peers/run.sh; Open MPI is not tuned any further. Our buffers are in huge
         pages in any case, C's only with +thp; without, all copies that MPI makes from one process to another are slower for C.
  -bind  core: each process to a core. none: to none            (core, or none where there are more replicas than cores)
  -many  COUNTxSIZE[,SIZE...]: several tensors in one call; none: without. Only if allreduce is among the collectives   (64x16K)
-b and -f are for the other transports.

With -transport shm and tcp mpirun binds two ranks to a core each, and more than two to none; our processes are never bound. With -transport shm
GCL_OPTIONS='{"sharedAlloc":false}' has ours in memory that is not shared: their bytes go by messages, through rings in shared memory.

With -transport tcp it is the fastest of TCP with huge pages and without, and for an all-reduce of each of its six algorithms with them.
Each round measures ours over TCP, ours over unix sockets, and Open MPI, one after the other.

How many cores other processes kept busy during each run is noted: the time of all processors in /proc/stat that was neither idle nor our
children's, by the time of the run. What the hypervisor took (steal) counts as others'. A core or more makes the run worth little.
It is what others got and not what they wanted: as many replicas as cores leave them little.

Before and after each step the latency from core to core is measured (not during: that would take both cores away). On virtual machines it switches between
about 25, 55 and 240 ns for seconds at a time; what was measured at 150 ns and more is left out, unless there is nothing else.
END
}
fail() {
	echo "peers.sh: $*" >&2
	exit 2
}

n=2 collectives=allreduce,reducescatter,allgather,alltoall,broadcast sizes=8,1K,32K,1M,16M,64M secs=0.02 rounds=3
method=auto implementation=Auto place=oop transport=inproc batch='' sync='' dirty=-dirty best='' csv='' floor='' library='' settings='' bind='' many=''
while [ $# -gt 0 ]; do
	case $1 in
	-h | -help | --help) help && exit ;;
	-batch)
		batch=-batch
		shift
		continue
		;;
	-sync | -clean)
		if [ "$1" = -sync ]; then sync=-sync; else dirty=''; fi
		shift
		continue
		;;
	-n | -c | -s | -t | -r | -m | -i | -p | -b | -o | -f | -transport | -mpi | -l | -bind | -many) [ $# -gt 1 ] || fail "$1 needs a value" ;;
	*) fail "unknown argument $1; -h explains" ;;
	esac
	case $1 in
	-n) n=$2 ;; -c) collectives=$2 ;; -s) sizes=$2 ;; -t) secs=$2 ;; -r) rounds=$2 ;; -m) method=$2 ;; -i) implementation=$2 ;;
	-p) place=$2 ;; -b) best=$2 ;; -o) csv=$2 ;; -f) floor=$2 ;; -transport) transport=$2 ;;
	-mpi) library=$2 ;; -l) settings=$2 ;; -bind) bind=$2 ;; -many) many=$2 ;;
	esac
	shift 2
done
usual=2 # the modes of peers/mpibench.c: that of clean calls, and all
[ -z "$sync" ] || usual=1
modes=$usual
[ -z "$dirty" ] || modes=$((usual + 4))
[[ $n =~ ^[0-9]+$ && $n -ge 2 ]] || fail "-n $n, want 2 or more"
[[ $rounds =~ ^[0-9]+$ && $rounds -ge 1 ]] || fail "-r $rounds, want 1 or more"
[[ $secs =~ ^[0-9]*\.?[0-9]+$ ]] || fail "-t $secs, want seconds, such as 0.02"
case $transport in
inproc | shm) ours=("$transport") configs=(shm+thp ucx+thp) tuned=shm+thp ;;
tcp) ours=(tcp unix) configs=(tcp tcp+thp) tuned=tcp+thp ;;
mpi)
	ours=() configs=()
	[ -z "$best" ] || fail "-b $best: with -transport mpi there is one way to run MPI, by -l"
	;;
*) fail "-transport $transport cannot be compared; there are inproc, shm, tcp and mpi" ;;
esac
: "${best:=2}"
[[ $best =~ ^[0-9]+$ && $best -ge 1 ]] || fail "-b $best, want 1 or more"
cores=$(nproc)
if [ "$transport" = mpi ]; then
	: "${library:=openmpi}" "${settings:=shm+thp}" "${many:=64x16K}"
	if [ -z "$bind" ]; then if [ "$n" -le "$cores" ]; then bind=core; else bind=none; fi; fi
	case $library,$settings in
	openmpi,shm | openmpi,shm+thp | openmpi,ucx+thp | openmpi,tcp | openmpi,tcp+thp | mpich,shm | mpich,shm+thp) ;;
	openmpi,*) fail "-l $settings, want shm, shm+thp, ucx+thp, tcp or tcp+thp" ;;
	mpich,*) fail "-l $settings, want shm or shm+thp with -mpi mpich" ;;
	*) fail "-mpi $library, want openmpi or mpich" ;;
	esac
	[ "$bind" = core ] || [ "$bind" = none ] || fail "-bind $bind, want core or none"
	[ "$bind" = none ] || [ "$n" -le "$cores" ] || fail "-bind core: there are $cores cores for -n $n"
	[ "$method" != native ] || fail "-m native: native is measured anyway; -m is the method to measure beside it"
	[ -z "${GCL_OPTIONS-}" ] || fail "GCL_OPTIONS is set, and overrides the methods that are compared: unset it"
else
	for flag in "${library:+-mpi}" "${settings:+-l}" "${bind:+-bind}" "${many:+-many}"; do
		[ -z "$flag" ] || fail "$flag is for -transport mpi"
	done
	library=openmpi
fi
[ -z "$floor" ] || [ "$transport" = inproc ] || fail "-f $floor: gclperf takes a floor with -transport inproc only"
[ "$place" = oop ] || [ "$place" = ip ] || fail "-p $place, want oop or ip"
IFS=, read -ra collective <<<"$collectives"
for c in "${collective[@]}"; do
	case $c in allreduce | reducescatter | allgather | alltoall | broadcast) ;; *) fail "-c $c: there is no such collective" ;; esac
done
# numbers FLAG SIZES prints the sizes as bytes.
numbers() {
	local bytes=() size s unit
	IFS=, read -ra size <<<"$2"
	for s in "${size[@]}"; do
		[[ $s =~ ^([1-9][0-9]*)([KMG]?)(iB)?$ ]] || fail "$1 $s, want something like 8, 1K or 64MiB"
		unit=1
		case ${BASH_REMATCH[2]} in K) unit=1024 ;; M) unit=$((1 << 20)) ;; G) unit=$((1 << 30)) ;; esac
		bytes+=($((BASH_REMATCH[1] * unit)))
	done
	(IFS=, && echo "${bytes[*]}")
}
mpisizes=$(numbers -s "$sizes")
tensors=0
if [ -n "$many" ] && [ "$many" != none ]; then
	[[ $many =~ ^([1-9][0-9]{0,3})x(.+)$ ]] || fail "-many $many, want something like 64x16K or 64x1K,16K, or none"
	tensors=${BASH_REMATCH[1]}
	manysizes=$(numbers -many "${BASH_REMATCH[2]}")
	if [ "$tensors" -lt 2 ] || [ "$tensors" -gt 1024 ]; then fail "-many $many, want 2 to 1024 tensors"; fi
	for s in ${manysizes//,/ }; do [ $((s % 4)) = 0 ] || fail "-many $many: float32 have 4 bytes, and $s is no multiple"; done
fi
case $library in
openmpi) name="Open MPI" packages="openmpi-bin libopenmpi-dev" pc=ompi-c ;;
mpich) name=MPICH packages="mpich libmpich-dev" pc=mpich ;;
esac
if ! command -v "mpirun.$library" >/dev/null || ! command -v "mpicc.$library" >/dev/null; then
	fail "there is no $name to compare with. On Debian: apt-get install $packages"
fi
if [ "$transport" = mpi ]; then
	command -v pkg-config >/dev/null || fail "there is no pkg-config, which finds $name for cgo. On Debian: apt-get install pkg-config"
	pkg-config --exists "$pc" || fail "pkg-config does not know $pc, which comes with $name. On Debian: apt-get install $packages"
fi
command -v gcc >/dev/null || fail "there is no C compiler. On Debian: apt-get install gcc libc6-dev"

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT # which also cleans up
trap 'exit 143' TERM
raw=$work/raw.csv
tags=()
if [ "$transport" = mpi ]; then
	tags=(-tags mpi)
	CGO_CFLAGS="$(pkg-config --cflags "$pc") -Wno-stringop-overflow" # what GCC says of MPICH's MPI_STATUSES_IGNORE
	CGO_LDFLAGS=$(pkg-config --libs "$pc")
	export CGO_ENABLED=1 CGO_CFLAGS CGO_LDFLAGS
fi
(cd "$here/.." && go build "${tags[@]}" -o "$work/" ./cmd/gclperf ./bench/peers/many && go build -o "$work/report" ./bench/peers/report)

# The floor and the latency need two cores, the floor AVX-512 as well.
tick=$(getconf CLK_TCK)
if [ "$cores" -ge 2 ]; then
	gcc -O2 -pthread -o "$work/ppmon" "$here/peers/ppmon.c"
	if [[ $transport = inproc || $transport = shm ]] && [[ $n =~ ^(2|4|8)$ ]] && grep -qw avx512f /proc/cpuinfo; then
		gcc -O3 -march=native -pthread -o "$work/arlimit" "$here/peers/arlimit.c"
	fi
fi

if [ "$transport" = tcp ] && [ "$n" -le 16 ]; then gcc -O2 -pthread -o "$work/sockets" "$here/peers/sockets.c"; fi

# latency prints the nanoseconds from core to core now, 0 where it is not known. The least of three samples: one that met another program says nothing.
latency() {
	[ -x "$work/ppmon" ] || { echo 0 && return; }
	for _ in 1 2 3; do "$work/ppmon" 0; done | sort -g | head -1 | tr -d ' \n'
}

# mark FILE writes three numbers of seconds: the time, what all processors have worked and lost to the hypervisor, and what our children have worked.
# The time is that of all processors by their number, as /proc/stat has it: read in one go, it fits the rest.
mark() {
	times >"$work/times" # not in a pipe: a subshell has no children
	awk -v tick="$tick" '
		FILENAME == "/proc/stat" && $1 == "cpu" { busy = $2 + $3 + $4 + $7 + $8 + $9; all = busy + $5 + $6 }
		FILENAME == "/proc/stat" && $1 ~ /^cpu[0-9]/ { cores++ }
		FILENAME != "/proc/stat" && FNR == 2 {
			for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); own += 60 * t[1] + t[2] }
		}
		END { printf "%.3f %.3f %.3f\n", all / tick / cores, busy / tick, own }' /proc/stat "$work/times" >"$1"
}

# beside NAME COMMAND... runs a command and notes how many cores others kept busy meanwhile.
beside() {
	mark "$work/before"
	"${@:2}"
	mark "$work/after"
	paste "$work/before" "$work/after" | awk -v name="$1" -v load="$work/load" '{
		wall = $4 - $1
		others = $5 - $2 - ($6 - $3)
		if (others < 0) others = 0
		printf "%s %.2f, ", name, (wall > 0 ? others / wall : 0)
		print wall, others >>load
	}' >>"$work/others"
}

# mpi COLLECTIVES CONFIG SIZES SECONDS MODES: CONFIG is one of configs, or shm+thp:aALGORITHM or tcp+thp:aALGORITHM.
mpi() {
	local names=${1/broadcast/bcast} alg=() at=$place
	[ "$names" = bcast ] && at=oop
	case $2 in *:a*) alg=(-a "${2##*:a}") ;; esac
	bash "$here/peers/run.sh" -n "$n" -c "$names" -l "${2%%:*}" -s "$3" -t "$4" -m "$5" -p "$at" -k 0 "${alg[@]}"
}

# quick COLLECTIVES CONFIG: a short measurement of one way to run Open MPI.
quick() {
	if lines=$(mpi "$1" "$2" "$mpisizes" 0.005 "$usual" 2>"$work/err"); then
		keep peer 0 0 <<<"$lines"
	else
		echo "# Open MPI as $2 does not run here: $(head -c 200 "$work/err" | tr '\n' ' ')"
	fi
}

# our COLLECTIVE TRANSPORT measures ours.
our() {
	"$work/gclperf" -collective "$1" -n "$n" -transport "$2" -method "$method" -implementation "$implementation" -sizes "$sizes" -time "${secs}s" -place "$at" ${batch:+"$batch"} ${sync:+"$sync"} \
		${dirty:+"$dirty"} -csv |
		sed 1d >>"$work/ours"
}

# theirs COLLECTIVE measures Open MPI as planned.
theirs() {
	while read -r config name list; do
		[ "$name" = "$1" ] || continue
		mpi "$1" "$config" "$list" "$secs" "$modes" >>"$work/peer" </dev/null
	done <"$work/plan"
}

# together COMMAND... runs a command under mpirun as all are compared, with -transport mpi.
together() { bash "$here/peers/run.sh" -n "$n" -L "$library" -l "$settings" -b "$bind" -- "$@" </dev/null; }

# goOver COLLECTIVE METHOD measures ours over MPI, by a method. native has no implementations. A last size of 2 MiB, which is left out again, puts
# smaller buffers in huge pages, where those of C are with +thp whatever their size: MPI copies from one process to another page by page.
goOver() {
	local how=$implementation at=$place more='' s
	for s in ${mpisizes//,/ }; do [ "$s" -lt $((2 << 20)) ] || break; done
	if [ "$s" -lt $((2 << 20)) ]; then more=,2M; fi
	[ "$1" = broadcast ] && at=ip
	[ "$2" = native ] && how=Auto
	if [[ $1 = *xallreduce ]]; then
		together "$work/many" -method "$2" -tensors "$tensors" -sizes "$manysizes" -time "${secs}s" -place "$place" >"$work/output"
		grep "^$2,$n,$1," "$work/output" >>"$work/ours" # libraries print there too
	else
		together "$work/gclperf" -collective "$1" -transport mpi -method "$2" -implementation "$how" -sizes "$sizes$more" -time "${secs}s" \
			-place "$at" ${batch:+"$batch"} ${sync:+"$sync"} ${dirty:+"$dirty"} -csv >"$work/output"
		grep "^$1,mpi," "$work/output" | if [ -n "$more" ]; then sed '$d'; else cat; fi >>"$work/ours"
	fi
}

# cOver COLLECTIVE FORM measures MPI from C: blocking, nonblocking or floor.
cOver() {
	local name=${1/broadcast/bcast} at=$place list=$mpisizes of=1 how=$modes
	[ "$name" = bcast ] && at=oop
	if [[ $name = *xallreduce ]]; then name=allreduce list=$manysizes of=$tensors; fi
	if [ "$2" = floor ] || [ "$of" -gt 1 ]; then how=2; fi
	bash "$here/peers/run.sh" -n "$n" -L "$library" -l "$settings" -b "$bind" -f "$2" -c "$name" -K "$of" -s "$list" -t "$secs" -m "$how" -p "$at" -k 0 </dev/null
}

# overMPI ROUND COLLECTIVE measures all five, one after the other.
overMPI() {
	local seen worst form
	: >"$work/ours"
	: >"$work/peer"
	: >"$work/floor"
	: >"$work/others"
	seen=$(latency)
	for form in "$method" native; do
		beside "$form" goOver "$2" "$form"
		seen="$seen $(latency)"
	done
	for form in nonblocking blocking; do
		beside "$form" cOver "$2" "$form" >>"$work/peer"
		seen="$seen $(latency)"
	done
	beside floor cOver "$2" floor >>"$work/floor"
	seen="$seen $(latency)"
	worst=$(tr ' ' '\n' <<<"$seen" | sort -g | tail -1)
	for form in ours peer floor; do keep "$form" "$1" "$worst" <"$work/$form"; done
	echo "# round $1, $2: latencies $seen ns; cores kept busy by others: $(sed 's/, $//' "$work/others" | tr -d '\n')"
}

# summary prints how long all has taken, and what others did meanwhile.
summary() {
	echo "# $((SECONDS - started)) s in all; $(awk '{ wall += $1; others += $2; if ($1 > 0 && $2 / $1 > most) most = $2 / $1 }
		END { printf "others kept %.2f of '"$cores"' cores busy in the mean, %.2f at most", (wall > 0 ? others / wall : 0), most }' "$work/load")"
	echo
}

# keep WHO ROUND NANOSECONDS puts lines in the raw file.
keep() { sed "s/^/$1,$2,$3,/" >>"$raw"; }

version=$("mpirun.$library" --version | sed -n 's/^mpirun.* //p; s/^ *Version: *//p')
echo "# gclperf${batch:+ $batch}${sync:+ $sync}${dirty:+ $dirty} against $name $version, $n replicas on $cores cores, $(uname -m), $(date -u +%Y-%m-%dT%H:%MZ), load $(cut -d' ' -f1 /proc/loadavg)"
if [ "$n" -le 2 ]; then bound="each of its ranks to a core"; else bound="its ranks to no core"; fi
case $transport in
shm) echo "# ours as processes over memory that they share, Open MPI over shared memory; mpirun binds $bound, ours are bound to none" ;;
tcp)
	echo "# ours over TCP and over unix sockets, Open MPI over TCP (pml ob1, btl tcp,self), all on loopback; mpirun binds $bound, ours are bound to none"
	;;
esac
[ -z "${GCL_OPTIONS-}" ] || echo "# GCL_OPTIONS=$GCL_OPTIONS"

# With -transport mpi there is one way to run MPI, and no choice to make.
if [ "$transport" = mpi ]; then
	started=$SECONDS
	echo "# ours over MPI, and MPI from C, by the same mpirun, -l $settings, bound to: $bind. C nb: nonblocking, C bl: blocking; -h explains"
	for ((r = 1; r <= rounds; r++)); do
		for c in "${collective[@]}"; do
			overMPI "$r" "$c"
			if [ "$c" = allreduce ] && [ "$tensors" != 0 ]; then overMPI "$r" "${tensors}xallreduce"; fi
		done
	done
	summary
	"$work/report" -n "$n" -mpi ${csv:+-o "$csv"} "$raw"
	exit
fi

# A quick pass over all ways to run Open MPI. run.sh leaves a broadcast out in place.
started=$SECONDS
seen=$(latency)
for config in "${configs[@]}"; do
	quick "$collectives" "$config"
	if [ "$place" = ip ] && [[ $collectives = *broadcast* ]]; then quick broadcast "$config"; fi
done
if [[ $collectives = *allreduce* ]]; then
	for a in 1 2 3 4 5 6; do quick allreduce "$tuned:a$a"; done
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
		: >"$work/ours"
		: >"$work/others"
		for by in "${ours[@]}"; do
			beside "$by" our "$c" "$by"
			seen="$seen $(latency)"
		done
		: >"$work/peer"
		beside peer theirs "$c"
		: >"$work/floor"
		if [ "$c" = allreduce ] && [ -x "$work/arlimit" ]; then
			"$work/arlimit" "$secs" "$n" "$mpisizes" >"$work/floor.all"
			grep ",$place," "$work/floor.all" >"$work/floor"
		elif [ -x "$work/sockets" ]; then
			"$work/sockets" -n "$n" -c "$c" -s "$mpisizes" -t "$secs" >"$work/floor"
			"$work/sockets" -u -n "$n" -c "$c" -s "$mpisizes" -t "$secs" >>"$work/floor"
		fi
		seen="$seen $(latency)"
		worst=$(tr ' ' '\n' <<<"$seen" | sort -g | tail -1)
		keep ours "$r" "$worst" <"$work/ours"
		keep peer "$r" "$worst" <"$work/peer"
		keep floor "$r" "$worst" <"$work/floor"
		echo "# round $r, $c: latencies $seen ns; cores kept busy by others: $(sed 's/, $//' "$work/others")"
	done
done
summary
if [ -n "$floor" ]; then
	if [ -s "$work/floor.all" ]; then cp "$work/floor.all" "$floor"; else echo "# the floor is not known here: $floor is not written"; fi
fi
"$work/report" -n "$n" ${csv:+-o "$csv"} "$raw"
