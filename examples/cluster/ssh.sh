#!/bin/bash
# Starts one replica on each host of a list by ssh, with no launcher. A host that stands there twice has two replicas:
#
#	examples/cluster/ssh.sh 'node1 node1 node2 node2' /shared/rts [flags of rts]
#
# The program has the same path on all hosts. Replica 0 is on the first host and takes PORT there, 6000 unless set. The
# secret goes to the replicas through ssh's standard input: no file holds it, and no command line.
#
# Ctrl-C ends ssh and not the replicas. To end them all, end one of them.
set -euo pipefail

if (($# < 2)); then
	echo "usage: $0 'HOST...' PROGRAM [ARGUMENT...]" >&2
	exit 2
fi
read -ra hosts <<<"$1"
shift
secret=$(head -c 32 /dev/urandom | base64)
export_job="export WORLD_SIZE=${#hosts[@]} GCL_RENDEZVOUS=${hosts[0]}:${PORT:-6000} GCL_SECRET"

pids=()
for rank in "${!hosts[@]}"; do
	# shellcheck disable=SC2029 # the host gets the job's values, not the names of this shell's variables
	ssh "${hosts[rank]}" "read -r GCL_SECRET; $export_job RANK=$rank; exec ${*@Q}" <<<"$secret" &
	pids+=($!)
done
code=0
for pid in "${pids[@]}"; do
	wait "$pid" || code=$?
done
exit "$code"
