#!/bin/bash
# Starts the replicas of one host by torchrun, which starts any program with --no-python. On each host:
#
#	GCL_SECRET_FILE=$HOME/.gcl-secret examples/cluster/torchrun.sh HEAD HOSTS REPLICAS ./rts [flags of rts]
#
# HEAD is the name of the first host, HOSTS their number, REPLICAS the number of replicas on this host. The file with the
# secret is the same on all hosts:
#
#	(umask 077; head -c 32 /dev/urandom | base64 >"$HOME/.gcl-secret")
set -euo pipefail

if (($# < 4)); then
	echo "usage: $0 HEAD HOSTS REPLICAS PROGRAM [ARGUMENT...]" >&2
	exit 2
fi
if (($2 > 1)); then
	: "${GCL_SECRET_FILE:?a job on several hosts needs a secret}"
fi
head=$1 hosts=$2 replicas=$3
shift 3

# torchrun agrees on the ranks of hosts itself, and starts nothing again: a replica that is started again finds no job.
exec torchrun --nnodes="$hosts" --nproc-per-node="$replicas" --max-restarts=0 \
	--rdzv-backend=c10d --rdzv-endpoint="$head:29400" --rdzv-id="${JOB:-gcl}" --no-python "$@"
