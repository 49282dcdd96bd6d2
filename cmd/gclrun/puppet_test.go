//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// spawned is what a puppet is to start.
type spawned struct {
	Args   []string
	Env    []string // more of it
	Attr   syscall.SysProcAttr
	Inputs bool // it has the puppet's standard input and output
}

// beAPuppet is the program of a replica: it dials the test's socket, says "rank pid", and does one line after the other
// that it is told, with a line as answer. It ends with the test at the latest.
func beAPuppet(socket string, more []string) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, "puppet:", err)
		os.Exit(99)
	}
	rank := os.Getenv("RANK")
	if len(more) > 0 {
		rank = more[0]
	}
	fmt.Fprintln(conn, rank, os.Getpid())
	stdin := bufio.NewReader(os.Stdin)
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		answer := "done"
		switch verb {
		case "out", "err": // a quoted text
			text, err := strconv.Unquote(rest)
			if err == nil {
				_, err = fmt.Fprint(map[string]io.Writer{"out": os.Stdout, "err": os.Stderr}[verb], text)
			}
			if err != nil {
				answer = err.Error()
			}
		case "close": // standard output
			os.Stdout.Close()
		case "read": // a line of standard input
			line, err := stdin.ReadString('\n')
			answer = fmt.Sprintf("%q %v", line, err)
		case "environ":
			text, _ := json.Marshal(os.Environ())
			answer = string(text)
		case "affinity":
			answer = affinity()
		case "catch": // signals, and report each in a line
			signals := make(chan os.Signal, 64)
			signal.Notify(signals, passedOn...)
			go func() {
				for s := range signals {
					fmt.Fprintln(conn, s)
				}
			}()
		case "raise":
			n, _ := strconv.Atoi(rest)
			_ = syscall.Kill(os.Getpid(), syscall.Signal(n))
			io.Copy(io.Discard, conn) // until it comes; select {} would be a deadlock to the runtime
		case "exit":
			n, _ := strconv.Atoi(rest)
			os.Exit(n)
		case "spawn":
			var s spawned
			if err := json.Unmarshal([]byte(rest), &s); err != nil {
				answer = err.Error()
				break
			}
			cmd := exec.Command(s.Args[0], s.Args[1:]...)
			cmd.Env, cmd.SysProcAttr = append(os.Environ(), s.Env...), &s.Attr
			if s.Inputs {
				cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
			}
			if err := cmd.Start(); err != nil {
				answer = err.Error()
			}
		}
		fmt.Fprintln(conn, answer)
	}
	os.Exit(98)
}
