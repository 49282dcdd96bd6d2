package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
)

// servePprof answers as package net/http/pprof does, on a unix socket that has the process's rank as its name:
//
//	curl --unix-socket directory/0 -o heap http://rts/debug/pprof/heap && go tool pprof heap
//
// The returned function ends it.
func servePprof(directory string, rank int) (end func(), err error) {
	path := filepath.Join(directory, fmt.Sprint(rank))
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) { // of a process that was killed
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	questions := http.NewServeMux()
	questions.HandleFunc("/debug/pprof/", pprof.Index)
	server := http.Server{Handler: questions}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // http.ErrServerClosed: l fails for no other reason
	}()
	return func() {
		_ = server.Close() // of l and of connections that nobody needs any more
		<-done
	}, nil
}
