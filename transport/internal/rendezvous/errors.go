package rendezvous

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is why a meeting failed.
type Kind uint8

// The kinds of errors.
const (
	Missing   Kind = iota + 1 // Replicas have not come in time
	Duplicate                 // two processes have the same rank
	WrongSize                 // replicas disagree about the size of the job
	Late                      // the job has begun without this replica
	Gone                      // a replica has come and its process has ended, or its connection
	GaveUp                    // the context of a replica was cancelled, or it could not go on
	Stranger                  // somebody else is where replica 0 should be
	lastKind  = Stranger
)

func (k Kind) String() string {
	names := [...]string{"none", "missing", "duplicate", "wrong size", "late", "gone", "gave up", "stranger"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Error is why a meeting failed. Kind, Replicas and Reason are the same at all replicas that had come.
type Error struct {
	Kind     Kind
	Replicas []int  // of which Kind is true
	Reason   string // names the replicas and what to do
	Err      error  `json:"-"` // the cause, where it is known: of the context, of the connection, of the handshake
}

func (e *Error) Error() string { return e.Reason }

func (e *Error) Unwrap() error { return e.Err }

// replicas names ranks: "replica 3 of 8", "replicas 3, 5 to 9 and 12 of 64".
func replicas(ranks []int, size int) string {
	if len(slices.Compact(slices.Sorted(slices.Values(ranks)))) == 1 {
		return fmt.Sprintf("replica %d of %d", ranks[0], size)
	}
	return fmt.Sprintf("replicas %s of %d", listed(ranks), size)
}

// numbers names ranks, with a verb for one and for several: "3 is", "3, 5 to 9 and 12 are".
func numbers(ranks []int, one, several string) string {
	if len(ranks) == 1 {
		return listed(ranks) + " " + one
	}
	return listed(ranks) + " " + several
}

// listed is ranks in order: "3, 5 to 9 and 12".
func listed(ranks []int) string {
	ranks = slices.Compact(slices.Sorted(slices.Values(ranks)))
	var parts []string
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		if j-i >= 2 {
			parts = append(parts, fmt.Sprintf("%d to %d", ranks[i], ranks[j]))
		} else {
			for _, r := range ranks[i : j+1] {
				parts = append(parts, fmt.Sprint(r))
			}
		}
		i = j + 1
	}
	if last := len(parts) - 1; last > 0 {
		return strings.Join(parts[:last], ", ") + " and " + parts[last]
	}
	return strings.Join(parts, "")
}

// verb is has or have.
func verb(ranks []int) string {
	if len(ranks) == 1 {
		return "has"
	}
	return "have"
}
