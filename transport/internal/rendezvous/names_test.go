package rendezvous

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"gogcl.dev/internal/freeport"
	"gogcl.dev/internal/leaktest"
)

// nameServer makes the resolver of this process ask a name server. Every name has the address 127.0.0.1, or there is no
// such name, as isKnown reports. asked is how often the server has been asked for an address of IPv4.
func nameServer(t *testing.T, isKnown func(asked int64) bool) {
	var asked atomic.Int64
	before := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = before })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			var length [2]byte // messages over a connection that is no PacketConn are as over TCP
			if _, err := io.ReadFull(server, length[:]); err != nil {
				return
			}
			query := make([]byte, binary.BigEndian.Uint16(length[:]))
			if _, err := io.ReadFull(server, query); err == nil {
				_, _ = server.Write(answer(query, func() bool { return isKnown(asked.Add(1)) }))
			}
		}()
		return client, nil
	}}
}

// answer is the message that answers a query: no such name, unless isKnown reports that there is one. Names have no
// address of IPv6.
func answer(query []byte, isKnown func() bool) []byte {
	const header, isA, nameError = 12, 1, 3
	end := header
	for query[end] != 0 {
		end += 1 + int(query[end])
	}
	kind := binary.BigEndian.Uint16(query[end+1:])
	out := append([]byte{}, query[:end+5]...)
	out[2], out[3] = 0x81, 0x80 // an answer, recursion wanted and available
	for i := 6; i < header; i++ {
		out[i] = 0 // no records
	}
	switch {
	case kind == isA && isKnown():
		out[7] = 1
		out = append(out, 0xc0, header, 0, isA, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
	case kind == isA:
		out[3] |= nameError
	}
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...)
}

// TestNameComesLater: replica 0 waits for the name at which it is to listen, as the others wait for replica 0.
func TestNameComesLater(t *testing.T) {
	leaktest.Check(t)
	nameServer(t, func(asked int64) bool { return asked > 6 })
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	check(t, meet(within(t, long), everyone(3, "pod-0.service.test.:"+port)...))
}

// TestNameNeverComes: the error of replica 0 is that of the name server.
func TestNameNeverComes(t *testing.T) {
	leaktest.Check(t)
	ctx, cancel := context.WithCancel(within(t, long))
	nameServer(t, func(asked int64) bool {
		if asked == 6 {
			cancel()
		}
		return false
	})
	_, err := Meet(ctx, config(0, 2, "pod-0.service.test.:6000"))
	var name *net.DNSError
	if !errors.As(err, &name) || !name.IsNotFound || !strings.Contains(err.Error(), "pod-0.service.test.:6000") {
		t.Errorf("error %v", err)
	}
}
