package remote

import (
	"errors"
	"fmt"
	"math"

	"gogcl.dev/tensor"
)

// Storage is where buffers keep their entries: [Memory], a [Dir] of files, or a type of the user's own.
type Storage interface {
	// Open gives the entries of one buffer on one replica, those that are kept already and new ones, which read as
	// zeros. It is an error, and nothing is changed, when what is kept has another element type or shape, or is more
	// entries than spec has. Entries that are open already may not be opened a second time.
	Open(spec Spec) (Entries, error)
}

// Spec says which entries are wanted and what they hold.
type Spec struct {
	// what tells a buffer from the others in a Storage: its name, or its id in decimal. See Buffer.Named.
	Buffer  string
	Replica int // whose entries; 0 or more
	DType   tensor.DType
	Shape   tensor.Shape // of one entry, which takes the bytes of a dense tensor
	Entries int          // 1 or more

	// Whole is the shape of the tensor of which each entry is a shard, and Shard is which one, from 0. A nil Whole says
	// that entries are no shards. Where the variables of a buffer are sharded in several ways, it is the shard of the
	// one with the lowest entry.
	Whole tensor.Shape
	Shard int

	// Number is the buffer's number in its program, from 1; 0 if it has none. A buffer without a name is kept under its
	// number. A Dir makes no file for a named buffer where there is one under its number: that file may hold the values
	// from before the buffer had a name.
	Number int

	// Names holds the name of the variable at each entry, from entry 0 on, "" where there is none. It may be shorter
	// than Entries. A Dir remembers the names: another name for an entry that has a value is an error. The slice is the
	// caller's and is not kept.
	Names []string
}

// Entries are the tensors of one buffer on one replica, as bytes in the host's order. Every method may be called from
// any goroutine at any time: a Load beside a Store of the same entry gives the old value or the new one, whole.
//
// Entry numbers start at 0; a number that does not exist, a slice that is not exactly as long as an entry, and
// any use after Close are errors.
type Entries interface {
	// Load copies an entry to dst; one that was never stored is zeros. It allocates nothing. After an error dst is
	// unspecified. The error of an entry that did not survive a crash is an ErrLost.
	Load(entry int, dst []byte) error
	// Store copies src to an entry. It allocates nothing. An error that is not about the arguments may leave the entry
	// lost.
	Store(entry int, src []byte) error
	// Stored reports whether an entry has a value of its own, or had one and is lost: one that does not reads as zeros.
	// Of an entry that does not exist it is false.
	Stored(entry int) bool
	// Grow makes room for that many entries and keeps what is stored: the new ones read as zeros. To ask for the
	// number that there is does nothing; fewer is an error. After an error there are as many as before.
	Grow(entries int) error
	// Lost lists the entries that are known to be lost, in order: those found when the entries were opened, and those
	// that failed since, less what has been stored anew.
	Lost() []int
	// Sync returns when all that was stored before it is safe from a loss of power, if the Storage knows such safety.
	Sync() error
	// Close does what Sync does and gives up what the entries use, even if it returns an error.
	Close() error
}

// ErrLost is what the error of a Load wraps when the value is gone: the process was killed or the power failed while it
// was being stored, or its bytes have been damaged since. A Store of the entry ends it.
var ErrLost = errors.New("the entry is lost until it is stored anew")

// String names the entries in errors.
func (s Spec) String() string { return fmt.Sprintf("buffer %.200q of replica %d", s.Buffer, s.Replica) }

// contents is the other half of String, for errors about a disagreement.
func (s Spec) contents() string {
	return fmt.Sprintf("entries %d, dtype %v, shape %v", s.Entries, s.DType, s.Shape)
}

// division says what entries are of their tensors, for errors about a disagreement.
func (s Spec) division() string {
	if s.Whole == nil {
		return "whole tensors"
	}
	return fmt.Sprintf("shard %d of tensors of shape %v", s.Shard, s.Whole)
}

// entryBytes is how many bytes an entry takes. The error says what is wrong with s.
func (s Spec) entryBytes() (int, error) {
	if err := checkName(s.Buffer); err != nil {
		return 0, err
	}
	if s.Replica < 0 {
		return 0, fmt.Errorf("replica %d is negative", s.Replica)
	}
	if s.Entries < 1 {
		return 0, fmt.Errorf("%d entries, want at least 1", s.Entries)
	}
	if len(s.Names) > s.Entries {
		return 0, fmt.Errorf("names for %d entries, there are %d", len(s.Names), s.Entries)
	}
	if err := s.Whole.Validate(); err != nil {
		return 0, fmt.Errorf("whole: %w", err)
	}
	if s.Shard < 0 {
		return 0, fmt.Errorf("shard %d is negative", s.Shard)
	}
	if s.Whole == nil && s.Shard > 0 {
		return 0, fmt.Errorf("shard %d, and no shape of a whole", s.Shard)
	}
	if s.Number < 0 {
		return 0, fmt.Errorf("number %d is negative", s.Number)
	}
	if !s.DType.Valid() {
		return 0, fmt.Errorf("invalid dtype %v", s.DType)
	}
	n, err := s.Shape.Elements()
	if err != nil {
		return 0, err
	}
	if n > math.MaxInt/s.DType.Size() {
		return 0, fmt.Errorf("an entry of %v and shape %v takes more than %d bytes", s.DType, s.Shape, math.MaxInt)
	}
	return n * s.DType.Size(), nil
}
