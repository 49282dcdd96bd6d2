//go:build !linux

package user

import (
	"fmt"
	"net"
	"runtime"
)

// TellsTCP is whether Check works for TCP over loopback.
const TellsTCP = false

// Check is an *[Error]: see the package's words.
func Check(net.Conn) error {
	return &Error{fmt.Errorf("%s does not say whose process is at the other end of a connection: "+
		"give all replicas a secret", runtime.GOOS)}
}
