package handshake

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
)

// Channel encrypts connections by mutual TLS 1.3 before they shake hands. A nil Channel leaves connections as they are.
//
// The secret of a handshake over TLS is one of its connection alone: the job's secret and a value that only the two
// ends of this connection know (RFC 9266, the exporter of TLS). So a proof that is passed on to another connection is
// none there, whoever has certificates.
type Channel struct {
	client, server *tls.Config
}

// exporterLabel names the value that two ends of a TLS connection derive for its handshake.
const exporterLabel = "EXPORTER-gogcl-handshake"

// channelLabel begins what is proved with the job's secret to make that of one connection.
const channelLabel = "gogcl handshake channel\x00"

// NewChannel makes a Channel of what a user gives. It changes nothing of config. The error says what would let others
// in than those with a certificate of the user's authorities.
//
// Left open, the version is TLS 1.3, the certificates of both sides are verified, and RootCAs and ClientCAs each stand
// for the other. Without a ServerName the dialer verifies the other side's certificate but not its name, since replicas
// are dialed at addresses that nobody knows beforehand: every holder of a certificate may be any replica. With a
// ServerName the certificates of all replicas have that name.
func NewChannel(config *tls.Config) (*Channel, error) {
	own := config.VerifyConnection != nil || config.VerifyPeerCertificate != nil
	switch {
	case len(config.Certificates) == 0 && (config.GetCertificate == nil || config.GetClientCertificate == nil):
		return nil, errors.New("the TLS configuration has no certificate: want Certificates, or both GetCertificate " +
			"and GetClientCertificate")
	case config.MinVersion != 0 && config.MinVersion < tls.VersionTLS13,
		config.MaxVersion != 0 && config.MaxVersion < tls.VersionTLS13:
		return nil, errors.New("the TLS configuration allows versions below 1.3: leave MinVersion and MaxVersion 0")
	case config.RootCAs == nil && config.ClientCAs == nil && !own:
		return nil, errors.New("the TLS configuration has no RootCAs and no ClientCAs: anybody whose certificate " +
			"the system knows could join")
	case config.InsecureSkipVerify && !own:
		return nil, errors.New("the TLS configuration has InsecureSkipVerify: anybody could be a replica; without " +
			"a ServerName the names in certificates are not compared, which is enough for replicas at any address")
	case config.ClientAuth == tls.RequireAnyClientCert && own:
	case config.ClientAuth != tls.NoClientCert && config.ClientAuth != tls.RequireAndVerifyClientCert:
		return nil, fmt.Errorf("the TLS configuration has ClientAuth %v: leave it 0, for %v", config.ClientAuth,
			tls.RequireAndVerifyClientCert)
	case config.GetConfigForClient != nil:
		return nil, errors.New("the TLS configuration has GetConfigForClient, which gogcl cannot check: leave it nil")
	}
	both := config.Clone()
	both.MinVersion = tls.VersionTLS13
	both.SessionTicketsDisabled, both.ClientSessionCache = true, nil // every connection verifies
	if both.RootCAs == nil {
		both.RootCAs = config.ClientCAs
	}
	if both.ClientCAs == nil {
		both.ClientCAs = config.RootCAs
	}
	if both.ClientAuth == tls.NoClientCert {
		both.ClientAuth = tls.RequireAndVerifyClientCert
	}
	c := &Channel{client: both.Clone(), server: both}
	if !config.InsecureSkipVerify && config.ServerName == "" {
		c.client.InsecureSkipVerify = true
		c.client.VerifyConnection = func(s tls.ConnectionState) error {
			if err := verifyChain(s, both); err != nil {
				return err
			}
			if config.VerifyConnection != nil {
				return config.VerifyConnection(s)
			}
			return nil
		}
	}
	return c, nil
}

// verifyChain is the check of crypto/tls for a server's certificate, without that of its name.
func verifyChain(s tls.ConnectionState, config *tls.Config) error {
	options := x509.VerifyOptions{Roots: config.RootCAs, Intermediates: x509.NewCertPool()}
	if config.Time != nil {
		options.CurrentTime = config.Time()
	}
	for _, c := range s.PeerCertificates[1:] {
		options.Intermediates.AddCert(c)
	}
	if _, err := s.PeerCertificates[0].Verify(options); err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
	}
	return nil
}

// TLSError says that two sides could not make a TLS connection.
type TLSError struct {
	Err error
}

func (e *TLSError) Error() string {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](e.Err); ok {
		return fmt.Sprintf("the other side's certificate is refused: %v: "+
			"give all replicas certificates of one authority, for servers and clients", e.Err)
	}
	if plain, ok := errors.AsType[tls.RecordHeaderError](e.Err); ok {
		if strings.HasPrefix(acceptorMagic, string(plain.RecordHeader[:])) {
			return "this side has TLS and the other side none: give all replicas a TLS configuration, or none"
		}
		return fmt.Sprintf("this side has TLS, and the other side begins with %q: another program has this port",
			plain.RecordHeader[:])
	}
	switch alert, _ := receivedAlert(e.Err); alert {
	case alertVersion:
		return "the other side refuses the version: want TLS 1.3 on both"
	case alertNoCertificate:
		return "the other side wants a certificate, and this side has none of its authorities"
	case alertBadCertificate, alertUnknownAuthority, alertExpired, alertUnsupported:
		return fmt.Sprintf("the other side refuses this side's certificate (%v): "+
			"give all replicas certificates of one authority, for servers and clients", alert)
	}
	return fmt.Sprintf("no TLS connection: %v", e.Err)
}

func (e *TLSError) Unwrap() error { return e.Err }

// Alerts of TLS (RFC 8446, 6.2).
const (
	alertUnexpected       = tls.AlertError(10)
	alertBadCertificate   = tls.AlertError(42)
	alertUnsupported      = tls.AlertError(43)
	alertExpired          = tls.AlertError(45)
	alertUnknownAuthority = tls.AlertError(48)
	alertVersion          = tls.AlertError(70)
	alertNoCertificate    = tls.AlertError(116)
)

// The types of TLS records by which a side without TLS knows one that has it.
const (
	alertRecord     = 21
	handshakeRecord = 22
)

// Dial is [Dial] over the channel. It takes twice [Limit] at most. It returns the connection to use in place of conn,
// which it closes after an error. The error is one of Dial, or a *[TLSError].
func (c *Channel) Dial(conn net.Conn, secret []byte, hello Hello) (net.Conn, error) {
	over, err := c.dial(conn, secret, hello)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return over, nil
}

func (c *Channel) dial(conn net.Conn, secret []byte, hello Hello) (net.Conn, error) {
	if c == nil {
		return conn, Dial(conn, secret, hello)
	}
	over := tls.Client(&metered{Conn: conn}, c.client)
	secret, err := c.begin(conn, over, secret)
	if err == nil {
		err = explain(Dial(over, secret, hello))
	}
	return over, err
}

// Accept is [Accept] over the channel. It takes twice [Limit] at most, and returns the connection to use in place of
// conn, which stays open after an error. The error is one of Accept, or a *[TLSError].
func (c *Channel) Accept(conn net.Conn, secret []byte, job string, check func(Hello) error) (net.Conn, Hello, error) {
	if c == nil {
		hello, err := Accept(conn, secret, job, check)
		return conn, hello, err
	}
	over := tls.Server(&metered{Conn: conn}, c.server)
	secret, err := c.begin(conn, over, secret)
	if err != nil {
		return nil, Hello{}, err
	}
	hello, err := Accept(over, secret, job, check)
	return over, hello, explain(err)
}

// metered is a connection below TLS. It counts what comes: TLS gives out whole records only.
type metered struct {
	net.Conn
	arrived atomic.Uint64
}

func (c *metered) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.arrived.Add(uint64(n))
	return n, err
}

// Bare is the connection below that of a [Channel], or conn itself if it is without TLS.
func Bare(conn net.Conn) net.Conn {
	if below := below(conn); below != nil {
		return below.Conn
	}
	return conn
}

// Arrived is how many bytes TLS has read of the connection below it, and false if conn is without TLS.
func Arrived(conn net.Conn) (bytes uint64, ok bool) {
	if below := below(conn); below != nil {
		return below.arrived.Load(), true
	}
	return 0, false
}

// below is what a connection of a [Channel] reads from, or nil if conn is none.
func below(conn net.Conn) *metered {
	if over, ok := conn.(*tls.Conn); ok {
		if below, ok := over.NetConn().(*metered); ok {
			return below
		}
	}
	return nil
}

// begin makes the TLS connection, and the secret for the handshake over it.
func (c *Channel) begin(conn net.Conn, over *tls.Conn, secret []byte) ([]byte, error) {
	if err := within(conn, over.Handshake); err != nil {
		if plain, ok := errors.AsType[tls.RecordHeaderError](err); ok &&
			strings.HasPrefix(dialerMagic, string(plain.RecordHeader[:])) {
			_ = write(conn, "the alert", []byte{alertRecord, 3, 3, 0, 2, 2, byte(alertUnexpected)})
		}
		if isEnded(err) {
			return nil, failure("the TLS handshake", err)
		}
		return nil, &TLSError{err}
	}
	state := over.ConnectionState()
	binding, err := state.ExportKeyingMaterial(exporterLabel, nil, sha256.Size)
	if err != nil {
		return nil, &TLSError{err}
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(channelLabel))
	mac.Write(binding)
	return mac.Sum(nil), nil
}

// isEnded reports whether an error of TLS is that of the connection below: it may do better next time.
func isEnded(err error) bool {
	for _, of := range []error{os.ErrDeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, io.ErrClosedPipe,
		syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, of) {
			return true
		}
	}
	return false
}

// receivedAlert is the alert by which the other side has ended a connection, if err says one. The package crypto/tls
// gives it another type than [tls.AlertError], with the same text.
func receivedAlert(err error) (alert tls.AlertError, ok bool) {
	received, ok := errors.AsType[*net.OpError](err)
	if !ok || received.Op != "remote error" {
		return 0, false
	}
	for a := range tls.AlertError(math.MaxUint8) {
		if received.Err.Error() == a.Error() {
			return a, true
		}
	}
	return 0, true
}

// explain makes an alert that ends a handshake a *TLSError: a dialer has done its part of TLS before the other side has
// verified its certificate.
func explain(err error) error {
	if _, ok := receivedAlert(err); ok {
		return &TLSError{err}
	}
	return err
}

// tellNoTLS answers a dialer that begins with TLS where the acceptor has none. It reads what has come of the dialer's
// first message: bytes that nobody reads would have the system throw the answer away.
func tellNoTLS(conn net.Conn) {
	_, _ = conn.Read(make([]byte, 16<<10))
	_ = write(conn, "the answer", binary.BigEndian.AppendUint16([]byte(acceptorMagic), Version))
}
