// Package wire says what the numbers in a transport.Call mean, which members compare and errors print: group, sequence
// number, collective, element type and digest. It names calls as errors, traces and the flight recorder do.
//
// It knows no Comm, no options and no operator.
package wire
