//go:build !linux

package tcp

import (
	"errors"
	"net"

	"gogcl.dev/transport/internal/segment"
	"gogcl.dev/transport/internal/stream"
)

// Nothing of this file is reached: Listen says that network Shm needs Linux.

func boundedText(err error) string { return err.Error() }

func closeDescriptors(...int) {}

func (s *shared) give(*net.UnixConn) error { return errors.ErrUnsupported }

func take(*net.UnixConn, int, segment.Form) (*neighbour, error) { return nil, errors.ErrUnsupported }

func (s *shared) newSleeper(uint64) (stream.Parker, error) { return nil, errors.ErrUnsupported }
