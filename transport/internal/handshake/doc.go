// Package handshake is how a connection between two replicas begins, before anything else is read from it.
//
//	dialer                                                            acceptor
//	hello    {magic, version, role, rank, peer, lane, job, nonce} ──▶
//	         ◀── answer  {magic, version, nonce, HMAC "acceptor"}
//	proof    {HMAC "dialer"}                                      ──▶          check
//	         ◀── verdict {code, text, HMAC "verdict"}
//
// Each HMAC is HMAC-SHA256 with the job's secret over a label of its own and all that was said before. Hence:
//
//   - No proof can be reflected: the labels differ.
//   - No proof can be replayed: each side has put a fresh nonce of 32 bytes into what is proved.
//   - No field can be changed on its way.
//   - A relay cannot take a dialer to another replica than the one it wants: that replica's check refuses, and nobody
//     without the secret can turn its verdict into another. So a dialer trusts the verdict only, not the answer.
//
// A relay that passes everything on to the right replica is not noticed, and what follows the handshake is neither
// encrypted nor authenticated: that takes TLS. A secret that can be guessed can be tried out offline by anyone who has
// seen one answer, so it wants 16 random bytes or more. An empty secret proves nothing. It is for loopback; the caller
// decides.
//
// # Over TLS
//
// A [Channel] makes a connection one of mutual TLS 1.3 first. The secret of the handshake is then an HMAC, under the
// job's secret, of a value that only the two ends of this TLS connection have. So the rank in the hello is bound to the
// channel. Somebody who has a certificate and relays between two connections has two values, and proves nothing with
// either. This holds without a secret of the job too.
//
// # What a stranger gets
//
// A dialer without the secret costs the acceptor at most 160 bytes, 2 seconds and one of 64 places, which it loses when
// others wait for it: see [Gate]. It learns the acceptor's version and an HMAC under a fresh nonce. It learns no job,
// no rank, and no reason. Over TLS, which has 2 seconds of its own, it also learns the acceptor's certificate.
//
// # Versions
//
// The size of the hello and the first 10 bytes of both directions stay as they are in every version, so that two
// versions can tell each other their numbers.
//
// # Use
//
// Dial and Accept work on any [net.Conn]. They leave it open; whoever called them closes it after an error. [Serve] is
// the loop of a listener: it accepts, gives each connection its place and its goroutine, and waits for them all.
package handshake
