#!/usr/bin/env bash
# Measures the library beside busy loops of other processes, and old against new: -h explains.
set -euo pipefail
help() {
	cat <<'END'
bench/busy.sh [-n REPLICAS,...] [-l LOOPS,...] [-s SIZE,...] [-r ROUNDS] [-t SECONDS] [-transport inproc|shm|unix] [-base GCLPERF]

Times all-reduces (gclperf, float32 ADD, out of place) and a training (examples/rts) on a machine on which other processes want processors: it starts the
busy loops itself, one process each, and ends them. Prints tables in Markdown: medians over rounds, microseconds, and samples a second.

  -n     numbers of replicas                                               (2,3,4,8)
  -l     numbers of busy loops                                             (0,1,2)
  -s     bytes of a replica's buffer                                       (8,1K,64K,1M)
  -r     rounds; each measures every way of communicating in turn          (5)
  -t     how long each point is timed, in seconds                          (0.05)
  -transport  inproc: replicas are goroutines. shm, unix: they are processes, over memory that they share or unix sockets; those of the
         training are started by gclrun                                   (inproc)
  -base  instead of all that, compare with an older gclperf, without loops: a round runs the new one once and the old one twice, in another order each time.
         new/old is the median of the ratios of a round; old/old is between which ratios eight of ten old pairs lie, which is what noise is

worst is Syncful or Auto, whichever is slower, by the better of Syncless and Syncful. Over unix sockets Syncful is messages
with barriers. The defaults take some five minutes. Nothing else should run meanwhile.
END
}
fail() {
	echo "busy.sh: $*" >&2
	exit 2
}

replicas=2,3,4,8 loops=0,1,2 sizes=8,1K,64K,1M rounds=5 secs=0.05 transport=inproc base=''
while [ $# -gt 0 ]; do
	case $1 in
	-h | -help | --help) help && exit ;;
	-n | -l | -s | -r | -t | -transport | -base) [ $# -gt 1 ] || fail "$1 needs a value" ;;
	*) fail "unknown argument $1; -h explains" ;;
	esac
	case $1 in
	-n) replicas=$2 ;; -l) loops=$2 ;; -s) sizes=$2 ;; -r) rounds=$2 ;; -t) secs=$2 ;; -transport) transport=$2 ;; -base) base=$2 ;;
	esac
	shift 2
done
[[ $replicas =~ ^[1-9][0-9]*(,[1-9][0-9]*)*$ ]] || fail "-n $replicas, want numbers of replicas, such as 2,4"
[[ $loops =~ ^[0-9](,[0-9])*$ ]] || fail "-l $loops, want numbers of busy loops, 9 at most, such as 0,1"
[[ $rounds =~ ^[1-9][0-9]*$ ]] || fail "-r $rounds, want 1 or more"
[[ $secs =~ ^[0-9]*\.?[0-9]+$ ]] || fail "-t $secs, want seconds, such as 0.05"
case $transport in inproc | shm | unix) ;; *) fail "-transport $transport, want inproc, shm or unix" ;; esac
[ -z "$base" ] || [ -x "$base" ] || fail "-base $base: not a program"
[ -z "$base" ] || base=$(realpath "$base")
IFS=, read -ra replica <<<"$replicas"
IFS=, read -ra loop <<<"$loops"

cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
pids=()
stop_loops() {
	((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
	((${#pids[@]} == 0)) || wait "${pids[@]}" 2>/dev/null || true
	pids=()
}
trap 'stop_loops; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
go build -o "$work" ./cmd/gclperf ./cmd/gclrun ./examples/rts
train=("$work/rts")
if [ "$transport" != inproc ]; then train=("$work/gclrun" -n 4 -transport "$transport" "$work/rts"); fi # 4 is what rts has by itself

# start_loops COUNT starts busy loops. Each ends by itself when this script is gone.
start_loops() {
	local i
	for ((i = 0; i < $1; i++)); do
		(while kill -0 $$ 2>/dev/null; do for ((k = 0; k < 1000000; k++)); do :; done; done) &
		pids+=($!)
	done
}

# perf PROGRAM N IMPLEMENTATION prints lines: size, median time in us.
perf() {
	"$1" -collective allreduce -n "$2" -transport "$transport" -implementation "$3" -place oop -sizes "$sizes" -time "${secs}s" -csv |
		awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { print $at["bytes"], $at["p50_us"] }'
}

# samples prints the median over passes of the samples a second of a training; IMPLEMENTATION Auto is the default.
samples() {
	GCL_OPTIONS="{\"collectiveImplementation\":\"$1\"}" "${train[@]}" |
		awk '{ for (i = 2; i <= NF; i++) if ($i == "samples/s") print $(i - 1) }' | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

medians='function sorted(key, v,   n, i, j, x) {
	n = split(values[key], v, " ")
	for (i = 2; i <= n; i++) { x = v[i] + 0; for (j = i - 1; j > 0 && v[j] + 0 > x; j--) v[j + 1] = v[j]; v[j + 1] = x }
	return n
}
function median(key,   n, v) {
	n = sorted(key, v)
	return n % 2 ? v[(n + 1) / 2] + 0 : (v[n / 2] + v[n / 2 + 1]) / 2
}
function quantile(key, q,   n, v) {
	n = sorted(key, v)
	return v[int(q * (n - 1) + 1.5)]
}'

if [ -n "$base" ]; then
	echo "| n | implementation | bytes | old us | new us | new/old | old/old |"
	echo "|---|---|---|---|---|---|---|"
	for n in "${replica[@]}"; do
		for way in Syncless Syncful; do
			for ((r = 0; r < rounds; r++)); do
				# The order turns round with each pair, and the old program runs twice.
				if ((r % 2)); then order=(new olda oldb); else order=(olda oldb new); fi
				for which in "${order[@]}"; do
					program=$base
					[ "$which" = new ] && program=$work/gclperf
					perf "$program" "$n" "$way" | sed "s/^/$which /"
				done
			done | awk -v n="$n" -v way="$way" "$medians"'
				{ values[$1, $2] = values[$1, $2] " " $3; if ($1 != "new") values["old", $2] = values["old", $2] " " $3; if (!($2 in seen)) { seen[$2] = 1; size[++count] = $2 } }
				END { for (i = 1; i <= count; i++) {
					s = size[i]
					rounds = split(values["new", s], fresh, " "); split(values["olda", s], one, " "); split(values["oldb", s], other, " ")
					for (r = 1; r <= rounds; r++) {
						values["ratio", s] = values["ratio", s] " " fresh[r] / one[r]
						values["noise", s] = values["noise", s] " " other[r] / one[r]
					}
					printf "| %s | %s | %s | %.3g | %.3g | %.2f | %.2f to %.2f |\n", n, way, s, median("old" SUBSEP s), median("new" SUBSEP s),
						median("ratio" SUBSEP s), quantile("noise" SUBSEP s, 0.1), quantile("noise" SUBSEP s, 0.9) } }'
		done
	done
	exit
fi

echo "| loops | n | bytes | Syncless us | Syncful us | Auto us | worst |"
echo "|---|---|---|---|---|---|---|"
for l in "${loop[@]}"; do
	start_loops "$l"
	for n in "${replica[@]}"; do
		for ((r = 0; r < rounds; r++)); do
			for way in Syncless Syncful Auto; do
				perf "$work/gclperf" "$n" "$way" | sed "s/^/$way /"
			done
		done | awk -v loops="$l" -v n="$n" "$medians"'
			{ values[$1, $2] = values[$1, $2] " " $3; if (!($2 in seen)) { seen[$2] = 1; size[++count] = $2 } }
			END { for (i = 1; i <= count; i++) {
				s = size[i]; less = median("Syncless" SUBSEP s); full = median("Syncful" SUBSEP s); auto = median("Auto" SUBSEP s)
				better = less < full ? less : full; slower = full > auto ? full : auto
				printf "| %s | %s | %s | %.3g | %.3g | %.3g | %.2f |\n", loops, n, s, less, full, auto, slower / better } }'
	done
	stop_loops
done
echo
echo "| loops | examples/rts, Syncless samples/s | Auto samples/s | Auto by Syncless |"
echo "|---|---|---|---|"
for l in "${loop[@]}"; do
	start_loops "$l"
	for ((r = 0; r < rounds; r++)); do
		for way in Syncless Auto; do echo "$way $(samples $way)"; done
	done | awk -v loops="$l" "$medians"'
		{ values[$1] = values[$1] " " $2 }
		END { printf "| %s | %.0f | %.0f | %.2f |\n", loops, median("Syncless"), median("Auto"), median("Auto") / median("Syncless") }'
	stop_loops
done
