package gcl_test

import (
	"crypto/tls"
	"strings"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/transport/mpi"
)

// TestJoinMPIFields: fields of JoinConfig that are for sockets are errors where the job goes over MPI.
func TestJoinMPIFields(t *testing.T) {
	for field, cfg := range map[string]gcl.JoinConfig{
		"TLS": {TLS: new(tls.Config)}, "Secret": {Secret: []byte("secret")}, "Rendezvous": {Rendezvous: "127.0.0.1:6123"},
		"Interface": {Interface: "eth"}, "Ports": {Ports: [2]int{1000, 2000}},
		"Checksum": {Checksum: gcl.ChecksumOn},
	} {
		cfg.Size, cfg.Transport = 1, "mpi"
		_, err := gcl.Join(t.Context(), cfg)
		if want := "JoinConfig." + field + " is for sockets, and the job goes over MPI"; err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", field, err, want)
		}
	}
}

// TestJoinMPINotBuilt: a program without the tag mpi says how to build it.
func TestJoinMPINotBuilt(t *testing.T) {
	if mpi.Built {
		t.Skip("the test is built with the tag mpi")
	}
	_, err := gcl.Join(t.Context(), gcl.JoinConfig{Size: 1, Transport: "mpi"})
	if err == nil || !strings.Contains(err.Error(), "build it with -tags mpi") {
		t.Errorf("%v, want how to build the program", err)
	}
}
