package rendezvous

import "time"

// A speaker tells how a meeting goes while it lasts, on the goroutine of Meet. A nil speaker is silent.
type speaker struct {
	tell  func(text string)
	next  time.Time     // when to say again for what it waits
	every time.Duration // until the time after that
	said  map[string]bool
}

// A process says for what it waits after the first time, and then every so often.
const (
	FirstWord = 5 * time.Second
	EveryWord = 15 * time.Second
)

// mostSaid bounds how many different things are said at once.
const mostSaid = 32

func newSpeaker(c *Config) *speaker {
	if c.Tell == nil {
		return nil
	}
	first, every := FirstWord, EveryWord
	if c.words > 0 {
		first, every = c.words, c.words
	}
	return &speaker{tell: c.Tell, next: time.Now().Add(first), every: every, said: map[string]bool{}}
}

// waits says for what the process waits, if it is time.
func (s *speaker) waits(text func() string) {
	if s == nil || time.Until(s.next) > 0 {
		return
	}
	s.next = time.Now().Add(s.every)
	s.tell(text())
}

// left is the time until waits says something, no more than most.
func (s *speaker) left(most time.Duration) time.Duration {
	if s == nil {
		return most
	}
	return min(most, max(time.Until(s.next), time.Millisecond))
}

// once says something now, unless it has been said.
func (s *speaker) once(text string) {
	if s == nil || s.said[text] || len(s.said) >= mostSaid {
		return
	}
	s.said[text] = true
	s.tell(text)
}
