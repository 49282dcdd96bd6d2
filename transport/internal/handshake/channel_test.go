package handshake

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gogcl.dev/internal/certificates"
	"gogcl.dev/internal/leaktest"
)

// over shakes hands between two sides over a TCP connection of this host, and returns their connections and errors.
func over(t *testing.T, dialer, acceptor *Channel, theirs []byte) (conns [2]net.Conn, errs [2]error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		conn, err := l.Accept()
		if err != nil {
			errs[1] = err
			return
		}
		t.Cleanup(func() { conn.Close() })
		if conns[1], _, errs[1] = acceptor.Accept(conn, theirs, "job", nil); errs[1] != nil {
			conn.Close()
		}
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conns[0], errs[0] = dialer.Dial(conn, secret, Hello{Job: "job", Rank: 1, Role: Control})
	<-accepted
	return conns, errs
}

func channel(t *testing.T, config *tls.Config) *Channel {
	t.Helper()
	c, err := NewChannel(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestChannel: two sides with certificates of one authority get through, with a secret and without; everybody else gets
// an error on both sides that says what to do.
func TestChannel(t *testing.T) {
	leaktest.Check(t)
	ours, others := certificates.New(t), certificates.New(t)
	good := ours.Config()
	named := ours.Config("replica.example")
	named.ServerName = "replica.example"
	misnamed := ours.Config("replica.example")
	misnamed.ServerName = "another.example"
	stranger := others.Config()
	stranger.RootCAs, stranger.ClientCAs = good.RootCAs, good.ClientCAs // believes us
	old := &Channel{client: good.Clone(), server: good.Clone()}
	for _, c := range []*tls.Config{old.client, old.server} {
		c.MaxVersion, c.InsecureSkipVerify = tls.VersionTLS12, true
	}
	bare := &Channel{client: &tls.Config{InsecureSkipVerify: true}}
	forServers := ours.ConfigFor([]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth})

	for _, test := range []struct {
		name             string
		dialer, acceptor *Channel
		want             [2]string // in the error of the dialer and of the acceptor; "": no error
	}{
		{"alike", channel(t, good), channel(t, good), [2]string{}},
		{"by name", channel(t, named), channel(t, named), [2]string{}},
		{"another name", channel(t, misnamed), channel(t, misnamed),
			[2]string{"not another.example", "refuses this side's certificate"}},
		{"dialer of another authority", channel(t, stranger), channel(t, good),
			[2]string{"one authority", "certificate is refused"}},
		{"acceptor of another authority", channel(t, good), channel(t, stranger),
			[2]string{"certificate is refused", "one authority"}},
		{"dialer without certificate", bare, channel(t, good),
			[2]string{"wants a certificate", "didn't provide a certificate"}},
		{"certificate for servers only", channel(t, forServers), channel(t, good),
			[2]string{"servers and clients", "servers and clients"}},
		{"dialer of TLS 1.2", old, channel(t, good), [2]string{"want TLS 1.3", "unsupported versions"}},
		{"acceptor of TLS 1.2", channel(t, good), old, [2]string{"want TLS 1.3", "unsupported versions"}},
		{"dialer without TLS", nil, channel(t, good), [2]string{"other side has TLS", "other side none"}},
		{"acceptor without TLS", channel(t, good), nil, [2]string{"other side none", "other side has TLS"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			conns, errs := over(t, test.dialer, test.acceptor, secret)
			for side, err := range errs {
				switch want := test.want[side]; {
				case want == "" && err != nil:
					t.Errorf("side %d: %v", side, err)
				case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
					t.Errorf("side %d: %v does not say %q", side, err, want)
				}
			}
			if test.want[0] != "" {
				return
			}
			for from, to := range []int{1, 0} {
				sent, got := bytes.Repeat([]byte{byte(from), 7}, 1000), make([]byte, 2000)
				go conns[from].Write(sent)
				if _, err := io.ReadFull(conns[to], got); err != nil || !bytes.Equal(got, sent) {
					t.Errorf("from side %d: %v", from, err)
				}
			}
		})
	}
	t.Run("another secret", func(t *testing.T) {
		_, errs := over(t, channel(t, good), channel(t, good), []byte("another"))
		for side, err := range errs {
			if !isA[*SecretError](err) {
				t.Errorf("side %d: %v", side, err)
			}
		}
	})
}

// TestChannelRelay: somebody with a certificate of the authority, but without the secret, who passes the messages of a
// handshake on between two connections of TLS, gets nowhere. Without TLS that is not noticed: see the package's words.
func TestChannelRelay(t *testing.T) {
	leaktest.Check(t)
	c := channel(t, certificates.New(t).Config())
	for _, secret := range [][]byte{secret, nil} {
		dialer, in := net.Pipe()
		out, acceptor := net.Pipe()
		go func() {
			from, to := tls.Server(in, c.server), tls.Client(out, c.client)
			defer from.Close()
			defer to.Close()
			done := make(chan bool, 2)
			if err := errors.Join(from.Handshake(), to.Handshake()); err != nil {
				t.Error(err)
				return
			}
			go func() { io.Copy(from, to); done <- true }()
			go func() { io.Copy(to, from); done <- true }()
			<-done
		}()
		accepted := make(chan error)
		go func() {
			_, _, err := c.Accept(acceptor, secret, "job", nil)
			acceptor.Close()
			accepted <- err
		}()
		_, err := c.Dial(dialer, secret, Hello{Job: "job", Rank: 1, Role: Control})
		if !isA[*SecretError](err) {
			t.Errorf("the dialer: %v", err)
		}
		if err := <-accepted; !isA[*SecretError](err) {
			t.Errorf("the acceptor: %v", err)
		}
	}
}

// TestNewChannel: what would let others in is an error.
func TestNewChannel(t *testing.T) {
	ca := certificates.New(t)
	for want, change := range map[string]func(*tls.Config){
		"no certificate":     func(c *tls.Config) { c.Certificates = nil },
		"below 1.3":          func(c *tls.Config) { c.MinVersion = tls.VersionTLS12 },
		"versions below 1.3": func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 },
		"no RootCAs":         func(c *tls.Config) { c.RootCAs, c.ClientCAs = nil, nil },
		"InsecureSkipVerify": func(c *tls.Config) { c.InsecureSkipVerify = true },
		"ClientAuth":         func(c *tls.Config) { c.ClientAuth = tls.VerifyClientCertIfGiven },
		"GetConfigForClient": func(c *tls.Config) {
			c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, nil }
		},
		"ClientAuth RequireA": func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert },
	} {
		config := ca.Config()
		change(config)
		if _, err := NewChannel(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	for name, change := range map[string]func(*tls.Config){
		"ClientCAs alone": func(c *tls.Config) { c.RootCAs = nil },
		"RootCAs alone":   func(c *tls.Config) { c.ClientCAs = nil },
		"1.3":             func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 },
	} {
		config := ca.Config()
		change(config)
		c, err := NewChannel(config)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, errs := over(t, c, c, secret); errs != [2]error{} {
			t.Errorf("%s: %v", name, errs)
		}
	}
}

// TestArrived: half of a record counts, though nothing of it can be read. Without TLS there is nothing to count.
func TestArrived(t *testing.T) {
	leaktest.Check(t)
	c := channel(t, certificates.New(t).Config())
	dialer, in := net.Pipe()
	out, acceptor := net.Pipe()
	var relay sync.WaitGroup
	relay.Go(func() { io.Copy(out, in) })
	var holds atomic.Bool
	half, rest := make(chan int), make(chan bool)
	relay.Go(func() {
		b := make([]byte, 1<<16)
		for {
			n, err := out.Read(b)
			if err != nil {
				return
			}
			k := 0
			if holds.Load() {
				k = n / 2
				in.Write(b[:k])
				half <- k
				<-rest
			}
			in.Write(b[k:n])
		}
	})
	accepted := make(chan net.Conn)
	go func() {
		conn, _, err := c.Accept(acceptor, secret, "job", nil)
		if err != nil {
			t.Error(err)
		}
		accepted <- conn
	}()
	from, err := c.Dial(dialer, secret, Hello{Job: "job", Rank: 1, Role: Control})
	to := <-accepted
	if err != nil || to == nil {
		t.Fatal(err)
	}
	if Bare(from) != dialer || Bare(dialer) != dialer {
		t.Error("Bare is not the connection below")
	}
	if _, ok := Arrived(dialer); ok {
		t.Error("a connection without TLS counts")
	}
	before, _ := Arrived(from)
	holds.Store(true)
	got := make(chan []byte, 1)
	go func() {
		b := make([]byte, 1000)
		io.ReadFull(from, b)
		got <- b
	}()
	go to.Write(bytes.Repeat([]byte{7}, 1000))
	for want := before + uint64(<-half); ; runtime.Gosched() {
		if n, ok := Arrived(from); !ok || n >= want {
			break
		}
	}
	if len(got) > 0 {
		t.Error("half a record has been read")
	}
	rest <- true
	if b := <-got; !bytes.Equal(b, bytes.Repeat([]byte{7}, 1000)) {
		t.Errorf("%d bytes: %v", len(b), b[:8])
	}
	for _, conn := range []net.Conn{dialer, in, out, acceptor} {
		conn.Close()
	}
	relay.Wait()
}
