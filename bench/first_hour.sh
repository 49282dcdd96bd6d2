#!/usr/bin/env bash
# What a newcomer does in the first hour, with a stopwatch: bash bench/first_hour.sh [-k DIR]
#
# It clones the repository, begins a module beside it, and has in it one program after the other: those that stand first
# on the pages for users, and short ones. Each line of the output is a step, its seconds, and the lines that the program
# had. The seconds are those of the machine and of the user's caches. A step fails if its command does, or its program
# prints an error; then the script prints all of what it said, goes on, and ends with exit code 1. With -k the folder,
# which is new or empty, is kept.
# shellcheck disable=SC2317 # step calls the functions
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

keep=
while getopts k:h flag; do
	case $flag in
	k) keep=$OPTARG ;;
	*)
		sed -n '2,/^# shellcheck/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | sed '/^shellcheck/d'
		exit 2
		;;
	esac
done
if [[ -n $keep ]]; then
	mkdir -p "$keep"
	dir=$(cd "$keep" && pwd)
	if [[ -n $(ls -A "$dir") ]]; then
		echo "first_hour.sh: $dir is not empty, want a new or an empty folder" >&2
		exit 2
	fi
else
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
fi

failed=0
# step NAME COMMAND... times a step in the newcomer's folder.
step() {
	local name=$1 began code=0
	shift
	began=$(date +%s.%N)
	(cd "$dir/mine" && "$@") >"$dir/said" 2>&1 || code=$?
	local took lines=-
	took=$(awk -v a="$began" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
	if [[ -f $dir/mine/main.go ]]; then
		lines=$(wc -l <"$dir/mine/main.go")
	fi
	if ((code == 0)) && grep -E '^error: ' "$dir/said" | grep -qv '^error: <nil>$'; then
		code=1
	fi
	if ((code != 0)); then
		printf '%8s  %5s  %s: FAILED (exit code %d)\n' "$took" "$lines" "$name" "$code"
		sed 's/^/          /' "$dir/said"
		failed=1
		return 0
	fi
	printf '%8s  %5s  %-34s %s\n' "$took" "$lines" "$name" "$(grep -vE '^go: |^error: <nil>' "$dir/said" | sort | tail -n 1 | cut -c1-60)"
}

# page FILE makes the first program of a page the newcomer's.
page() { awk '/^```go/ { on = 1; next } /^```/ { if (on) exit } on' "$root/$1" >"$dir/mine/main.go"; }

# body IMPORTS LINES makes a program of which four replicas run the lines.
body() {
	{
		printf 'package main\n\nimport (\n\t"context"\n\t"fmt"\n\n\t"gogcl.dev/gcl"\n'
		if (($# > 1)); then
			printf '\t"%s"\n' "${@:2}"
		fi
		printf ')\n\nfunc main() {\n\terr := gcl.RunOrJoin(context.Background(), 4, body)\n\tfmt.Println("error:", err)\n}\n\n'
		printf 'func body(ctx context.Context, c *gcl.Comm) error {\n%s\n}\n' "$1"
	} >"$dir/mine/main.go"
}

printf '%8s  %5s  %-34s %s\n' seconds lines step 'the last line, sorted'
mkdir "$dir/mine"
step 'clone' git clone -q "$root" "$dir/gogcl"

begin() {
	go mod init example.com/mine
	go mod edit -require gogcl.dev@v0.1.0 -replace gogcl.dev="$dir/gogcl"
	go mod tidy
	go run .
}
page README.md
step 'a module of my own, go run' begin

# one_job runs a command, whose four replicas must be of one job: of four jobs each has a replica 3.
one_job() {
	local out
	out=$("$@")
	printf '%s\n' "$out"
	if [[ $(grep -c '^replica 3 of 4: \[6 4\]$' <<<"$out") != 1 ]]; then
		echo 'error: want one line of replica 3 of 4'
	fi
}

by_gclrun() {
	(cd "$dir/gogcl" && go build -o "$dir/gclrun" ./cmd/gclrun)
	go build -o mine .
	one_job "$dir/gclrun" -n 4 ./mine
}
step 'four processes by gclrun' by_gclrun

by_mpirun() {
	local options=()
	if ! command -v mpirun >/dev/null; then
		echo 'not tried: there is no mpirun (apt-get install openmpi-bin)'
		return 0
	fi
	if mpirun --version | grep -q 'Open MPI'; then
		options=(--oversubscribe)
		((EUID != 0)) || options+=(--allow-run-as-root)
	fi
	one_job mpirun "${options[@]}" -n 4 ./mine
}
step 'four processes by mpirun' by_mpirun

body '	all, err := values.Reduce(ctx, c, map[string]int{"replicas": 1}, 0, func(a, b map[string]int) map[string]int {
		a["replicas"] += b["replicas"]
		return a
	})
	if c.Rank() == 0 {
		fmt.Println(all)
	}
	return err' gogcl.dev/gcl/values
step 'maps merged by values' go run .

body '	n, me := c.Size(), c.Rank()
	from := []int64{0}
	err := gcl.SendRecv(ctx, c, []int64{int64(me)}, (me+1)%n, from, (me+n-1)%n)
	fmt.Println(me, "has", from)
	return err'
step 'a message to the next' go run .

body '	xor, err := operator()
	if err != nil {
		return err
	}
	bits, err := gcl.AllReduce(ctx, c, []uint8{1 << c.Rank()}, xor)
	fmt.Println(bits)
	return err
}

var operator = sync.OnceValues(func() (gcl.Operator, error) {
	return gcl.NewOperator("xor", func(dst, a, b []uint8) {
		for i := range dst {
			dst[i] = a[i] ^ b[i]
		}
	})
})

func init() {' sync
step 'an operator of my own' go run .

body '	grads := [][]float32{{float32(c.Rank())}, {1, 2}}
	r, err := ddp.New(ctx, c, grads, ddp.Options{})
	if err != nil {
		return err
	}
	for i := range slices.Backward(grads) { // as a backward pass goes
		if err := r.Ready(ctx, i); err != nil {
			return err
		}
	}
	err = r.Finish(ctx)
	fmt.Println(grads)
	return err' gogcl.dev/gcl/ddp slices
step 'gradients of my own, by ddp' go run .

page docs/schedules.md
step 'a method of my own' go run .

page docs/from-msccl.md
step 'msccl-tools: programs and XML' go run .

xml() {
	(cd "$dir/gogcl" && go build -o "$dir/gclsched" ./cmd/gclsched)
	"$dir/gclsched" check "$dir/gogcl/methods/schedule/msccl/testdata/ring.xml"
}
rm "$dir/mine/main.go"
step 'an XML file, proved by gclsched' xml
exit "$failed"
