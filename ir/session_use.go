package ir

import (
	"context"
	"errors"
	"fmt"
)

var (
	errClosed  = errors.New("ir: the session is closed")
	errInUse   = errors.New("ir: another call of the session is in progress: it is used by one goroutine at a time")
	errNotMade = errors.New("ir: a session that NewSession has not made")
)

// made reports whether NewSession has made the session.
func (s *Session) made() bool { return s != nil && s.program != nil }

// begin takes the session for a method until end. It returns an error if another method has it, or after Close.
func (s *Session) begin() error {
	if !s.made() {
		return errNotMade
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	return s.take()
}

// beginClosed is begin of a method that may be called after Close.
func (s *Session) beginClosed() error {
	if !s.made() {
		return errNotMade
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take()
}

// take is called with mu held.
func (s *Session) take() error {
	if s.busy {
		return errInUse
	}
	s.busy = true
	return nil
}

// end gives the session back.
func (s *Session) end() {
	s.mu.Lock()
	s.busy = false
	s.mu.Unlock()
	s.idle.Broadcast()
}

// usable returns an error if the session cannot run.
func (s *Session) usable() error {
	switch {
	case s.failed != nil:
		return fmt.Errorf("ir: a run of the session has failed: %w", s.failed)
	case s.program.err != nil:
		return fmt.Errorf("ir: the program was built on after the session was made: %w", s.program.err)
	}
	return s.jobError()
}

// arm makes the context of a run from the one that the caller gives, or keeps that of the run before.
func (s *Session) arm(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if s.ctx == nil || s.given != ctx || s.ctx.Err() != nil {
		if s.cancel != nil {
			s.cancel(nil)
		}
		s.given = ctx
		s.ctx, s.cancel = context.WithCancelCause(ctx)
	}
	if err := s.jobError(); err != nil { // watch may have come before
		return err
	}
	if err := context.Cause(s.ctx); err != nil {
		return fmt.Errorf("ir: %w", err)
	}
	return nil
}
