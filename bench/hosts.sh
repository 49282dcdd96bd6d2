#!/usr/bin/env bash
# Compares ways of a job over several hosts, which are network namespaces with a bounded link: -h explains.
set -euo pipefail
help() {
	cat <<'END'
bench/hosts.sh [-hosts HOSTS] [-each REPLICAS] [-dealt] [-rate RATE] [-c COLLECTIVE,...] [-s SIZE,...] [-r ROUNDS] [-t SECONDS]
bench/hosts.sh [-hosts HOSTS] [-each REPLICAS] [-dealt] [-rate RATE] -job COMMAND ARGUMENT...
bench/hosts.sh [-hosts HOSTS] [-rate RATE] -once COMMAND ARGUMENT...

Measures a job (gclperf, float32 ADD, out of place) by messages among all replicas, flat, and by Hybrid: inside each host by shared memory, between
hosts over TCP. The hosts are network namespaces of this machine, each with a link that takes no more than RATE in each direction (tc, tbf). Each
round measures both in turn. Prints a table in Markdown: medians over rounds with the least and the greatest, microseconds. Needs root, or user
namespaces, and ip and tc (iproute2).

  -hosts  hosts                                                          (2)
  -each   replicas on each                                               (2)
  -dealt  replica r is on host r mod HOSTS; else those of a host follow each other
  -rate   of each host's link, as tc spells it                           (1gbit)
  -c      some of allreduce,reducescatter,allgather,alltoall,broadcast   (allreduce)
  -s      bytes of the larger buffer of a replica                        (8,32K,1M,16M)
  -r      rounds                                                         (5)
  -t      how long each point is timed, in seconds                       (0.2)
  -job    run COMMAND as a job instead, once for each replica
  -once   run COMMAND once, beside the hosts. GCL_HOSTS has their network namespaces, with commas between; they have the addresses 10.77.0.1, ...
END
}
fail() {
	echo "hosts.sh: $*" >&2
	exit 2
}

args=("$@") how='' places='' measures=''
hosts=2 each=2 dealt='' rate=1gbit collectives=allreduce sizes=8,32K,1M,16M rounds=5 secs=0.2
while [ $# -gt 0 ]; do
	case $1 in
	-h | -help | --help) help && exit ;;
	-job | -once) how=$1 && shift && break ;;
	-dealt) dealt=1 places=1 && shift && continue ;;
	-hosts | -each | -rate | -c | -s | -r | -t) [ $# -gt 1 ] || fail "$1 needs a value" ;;
	*) fail "unknown argument $1; -h explains" ;;
	esac
	case $1 in
	-hosts) hosts=$2 ;; -each) each=$2 places=1 ;; -rate) rate=$2 ;;
	-c) collectives=$2 measures=1 ;; -s) sizes=$2 measures=1 ;; -r) rounds=$2 measures=1 ;; -t) secs=$2 measures=1 ;;
	esac
	shift 2
done
[ -z "$how" ] || [ $# -gt 0 ] || fail "$how needs a command"
[ -z "$how" ] || [ -z "$measures" ] || fail "-c, -s, -r and -t are of the table, which $how is in place of"
[ "$how" != -once ] || [ -z "$places" ] || fail "-each and -dealt are of a job, and -once runs one process"
for number in "$hosts" "$each" "$rounds"; do
	[[ $number =~ ^[1-9][0-9]?$ ]] || fail "$number: want a number from 1 to 99"
done
for tool in ip tc nsenter unshare; do
	[ -n "$(command -v $tool)" ] || fail "needs $tool (iproute2, util-linux)"
done
if [ "${GCL_BENCH_HOSTS:-}" != 1 ]; then # the stage is a process of its own, with all that it starts
	own=(--net --mount --pid --fork --kill-child --mount-proc)
	[ "$(id -u)" = 0 ] || own+=(--user --map-root-user)
	GCL_BENCH_HOSTS=1 exec unshare "${own[@]}" "$0" ${args[@]+"${args[@]}"}
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
ip link set lo up
ip link add gcl0 type bridge
ip link set gcl0 up
space=()
for ((h = 0; h < hosts; h++)); do
	unshare --net sleep infinity &
	space[h]=$!
	until [ "$(readlink "/proc/${space[h]}/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
	ip link add "veth$h" type veth peer name eth0 netns "${space[h]}"
	ip link set "veth$h" master gcl0 up
	on=(nsenter --target "${space[h]}" --net)
	"${on[@]}" ip link set lo up
	"${on[@]}" ip link set eth0 up
	"${on[@]}" ip addr add "10.77.0.$((h + 1))/24" dev eth0
	"${on[@]}" tc qdisc add dev eth0 root tbf rate "$rate" burst 256kb latency 50ms
done

if [ "$how" = -once ]; then
	files=$(printf ',/proc/%s/ns/net' "${space[@]}")
	GCL_HOSTS=${files:1} "$@"
	exit
fi

# job runs a command as a job. What replica 0 prints on standard output is in $tmp/out.
n=$((hosts * each)) jobs=0
job() {
	local r h pids=()
	jobs=$((jobs + 1))
	for ((r = 0; r < n; r++)); do
		h=$((r / each))
		[ -z "$dealt" ] || h=$((r % hosts))
		local out=/dev/null
		[ "$r" != 0 ] || out=$tmp/out
		RANK=$r WORLD_SIZE=$n GCL_JOB=hosts$jobs GCL_RENDEZVOUS=10.77.0.1:$((6000 + jobs)) GCL_SECRET=$secret \
			nsenter --target "${space[h]}" --net "$@" >"$out" 2>"$tmp/err$r" &
		pids+=($!)
	done
	for r in "${!pids[@]}"; do
		wait "${pids[r]}" || { echo "replica $r:" && cat "$tmp/err$r" && exit 1; } >&2
	done
}
secret=$(head -c 24 /dev/urandom | base64)
if [ "$how" = -job ]; then
	job "$@"
	cat "$tmp/out"
	exit
fi
go build -C "$(dirname "$0")/.." -o "$tmp/gclperf" ./cmd/gclperf
: >"$tmp/all"
for ((round = 0; round < rounds; round++)); do
	for way in Syncless Hybrid; do
		for collective in ${collectives//,/ }; do
			job "$tmp/gclperf" -csv -collective "$collective" -sizes "$sizes" -implementation "$way" -place oop -time "${secs}s"
			sed "s/^/$way,/" "$tmp/out" >>"$tmp/all"
		done
	done
done

echo "float32, $hosts hosts of $each replicas on $(nproc) cores, $([ -z "$dealt" ] || echo "dealt out, ")links of $rate, $rounds rounds"
echo
echo "| collective | bytes | flat | Hybrid | flat / Hybrid | wrong |"
echo "|---|---|---|---|---|---|"
awk -F, '
function rank(a, n,   i, j, t) { for (i = 2; i <= n; i++) for (j = i; j > 1 && a[j] < a[j-1]; j--) { t = a[j]; a[j] = a[j-1]; a[j-1] = t } }
function middle(a, n) { return n % 2 ? a[(n+1)/2] : (a[n/2] + a[n/2+1]) / 2 }
function show(a, n) { rank(a, n); return sprintf("%.4g (%.4g to %.4g)", middle(a, n), a[1], a[n]) }
$2 == "collective" { for (i = 2; i <= NF; i++) at[$i] = i; next }
{
	key = $2 " | " $at["bytes"]
	if (!(key in rounds)) order[++keys] = key
	way = $1; us[way, key, ++seen[way, key]] = $at["p50_us"]
	rounds[key] = seen[way, key]; wrong[key] += $at["wrong"]
}
END {
	for (k = 1; k <= keys; k++) {
		key = order[k]; n = rounds[key]
		for (i = 1; i <= n; i++) {
			flat[i] = us["Syncless", key, i]; hybrid[i] = us["Hybrid", key, i]; ratio[i] = flat[i] / hybrid[i]
		}
		printf "| %s | %s | %s | %s | %d |\n", key, show(flat, n), show(hybrid, n), show(ratio, n), wrong[key]
	}
}' "$tmp/all"
