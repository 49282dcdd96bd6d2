package wire

import (
	"fmt"
	"strings"

	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// Name is the short name of a call: "all-reduce #3". One within the replica has no number there.
func Name(c transport.Call) string {
	if c.Collective&WithinReplica != 0 {
		return KindName(c.Collective)
	}
	number, _ := PhaseOf(c.Seq)
	if IsMessage(c.Collective) {
		return messageName(c)
	}
	return fmt.Sprintf("%s #%d", CollectiveName(c.Collective), number)
}

var messageNames = [...]string{"message", "send", "receive", "send and receive"}

// messageName is the name of a message, or of a call that moves one or two: "send #3 to replica 1".
func messageName(c transport.Call) string {
	name := CollectiveName(c.Collective)
	if c.Seq == 0 {
		return name
	}
	from, to := PeersOf(c.Root)
	name = fmt.Sprintf("%s #%d", name, c.Seq)
	switch c.Collective {
	case Send:
		return fmt.Sprintf("%s to replica %d", name, to)
	case Recv:
		return fmt.Sprintf("%s from replica %d", name, from)
	}
	return fmt.Sprintf("%s from replica %d to replica %d", name, from, to)
}

// RoundName is the name of a round by its number in a call: "round 4", "barrier before round 4".
func RoundName(round uint32) string {
	if round >= BarrierRound {
		return fmt.Sprintf("barrier before round %d", round-BarrierRound)
	}
	return fmt.Sprintf("round %d", round)
}

// CollectiveName is the name of a collective by its number in a call.
func CollectiveName(c uint8) string {
	switch {
	case c == Execute:
		return "execute"
	case IsMessage(c):
		return messageNames[c-Message]
	}
	return schedule.Collective(c).String()
}

// KindName is the name of a call by its number, which is a collective's, or that of one within the replica.
func KindName(c uint8) string {
	if c&WithinReplica != 0 {
		return NameWithin(schedule.Collective(c &^ WithinReplica))
	}
	return CollectiveName(c)
}

// WithArticle is a collective's name in a sentence: "an all-reduce".
func WithArticle(c schedule.Collective) string {
	name := c.String()
	if strings.ContainsRune("aeiou", rune(name[0])) {
		return "an " + name
	}
	return "a " + name
}

// Quote is how a name follows that of a call.
func Quote(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" %q", name)
}

// NameWithin is the name of a collective within the replica.
func NameWithin(c schedule.Collective) string { return c.String() + " within the replica" }
