package values

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"reflect"
	"runtime/debug"

	"gogcl.dev/gcl"
)

// MaxBytes is how many bytes a value may have, encoded: 1 GiB. A replica that is told of more takes no memory for it.
const MaxBytes = 1 << 30

// Gather returns the values of all members by rank, at the root; nil elsewhere.
func Gather[T any](ctx context.Context, c *gcl.Comm, v T, root int) ([]T, error) {
	call := callOf[T](c, "Gather", root)
	var out []T
	err := call.run(ctx, func() ([]byte, error) { return encode(v) }, func(lengths []int, own []byte) error {
		all, err := gcl.GatherV(ctx, c, own, lengths, root)
		if err == nil && c.Rank() == root {
			call.failed = protect(func() (err error) { out, err = decodeAll[T](all, lengths); return err })
		}
		return err
	})
	return unless(err, out)
}

// AllGather returns the values of all members by rank.
func AllGather[T any](ctx context.Context, c *gcl.Comm, v T) ([]T, error) {
	call := callOf[T](c, "AllGather", 0)
	var out []T
	err := call.run(ctx, func() ([]byte, error) { return encode(v) }, func(lengths []int, own []byte) error {
		all, err := gcl.AllGatherV(ctx, c, own, lengths)
		if err == nil {
			call.failed = protect(func() (err error) { out, err = decodeAll[T](all, lengths); return err })
		}
		return err
	})
	return unless(err, out)
}

// Broadcast returns the root's v. That of the others does not count.
func Broadcast[T any](ctx context.Context, c *gcl.Comm, v T, root int) (T, error) {
	call := callOf[T](c, "Broadcast", root)
	var out T
	err := call.run(ctx, func() ([]byte, error) {
		if c.Rank() != root {
			return nil, nil
		}
		return encode(v)
	}, func(lengths []int, own []byte) error {
		data := own
		if c.Rank() != root {
			data = make([]byte, lengths[root])
		}
		err := gcl.BroadcastInPlace(ctx, c, data, root)
		if err == nil {
			call.failed = protect(func() (err error) { out, err = decode[T](data); return err })
		}
		return err
	})
	return unless(err, out)
}

// Scatter returns element r of the root's vs, where r is this replica's rank. The root has as many as there are
// members. Those of the others do not count.
func Scatter[T any](ctx context.Context, c *gcl.Comm, vs []T, root int) (T, error) {
	call := callOf[T](c, "Scatter", root)
	var out T
	var lengths []int // of the root's values
	err := call.run(ctx, func() ([]byte, error) {
		if c.Rank() != root {
			return nil, nil
		}
		if len(vs) != c.Size() {
			return nil, fmt.Errorf("%d values for %d members, want one for each", len(vs), c.Size())
		}
		var all []byte
		for i, v := range vs {
			one, err := encode(v)
			if err != nil {
				return nil, fmt.Errorf("value %d: %w", i, err)
			}
			all, lengths = append(all, one...), append(lengths, len(one))
		}
		return all, nil
	}, func(_ []int, own []byte) error {
		if c.Rank() != root {
			lengths = make([]int, c.Size())
		}
		err := gcl.BroadcastInPlace(ctx, c, lengths, root)
		if err != nil {
			return err
		}
		one, err := gcl.ScatterV(ctx, c, own, lengths, root)
		if err == nil {
			call.failed = protect(func() (err error) { out, err = decode[T](one); return err })
		}
		return err
	})
	return unless(err, out)
}

// Reduce returns f(...f(f(v0, v1), v2)..., vn) of the values of all members in the order of their ranks, at the root;
// the zero T elsewhere. f is called at the root alone. It may change its arguments, which are copies.
func Reduce[T any](ctx context.Context, c *gcl.Comm, v T, root int, f func(a, b T) T) (T, error) {
	call := callOf[T](c, "Reduce", root)
	var out T
	err := call.run(ctx, func() ([]byte, error) {
		if f == nil {
			return nil, errors.New("the function is nil")
		}
		return encode(v)
	}, func(lengths []int, own []byte) error {
		all, err := gcl.GatherV(ctx, c, own, lengths, root)
		if err == nil && c.Rank() == root {
			call.failed = protect(func() error {
				vs, err := decodeAll[T](all, lengths)
				if err != nil {
					return err
				}
				out = vs[0]
				for _, v := range vs[1:] {
					out = f(out, v)
				}
				return nil
			})
		}
		return err
	})
	return unless(err, out)
}

// unless is a result, or the zero value with an error.
func unless[R any](err error, out R) (R, error) {
	if err != nil {
		var zero R
		return zero, err
	}
	return out, nil
}

// call is one call of this package on one replica.
type call struct {
	c      *gcl.Comm
	name   string // "Gather"
	what   string // what all members have alike: "Gather of map[string]int, root 0"
	hash   uint64 // of what, and of the type's fields, which its name may not tell
	failed error  // of this replica: all members are told
}

func callOf[T any](c *gcl.Comm, name string, root int) *call {
	t := reflect.TypeFor[T]()
	k := &call{c: c, name: name, what: fmt.Sprintf("%s of %v, root %d", name, t, root)}
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, k.what)
	writeFields(hash, t, map[reflect.Type]bool{})
	k.hash = hash.Sum64()
	if c != nil && (root < 0 || root >= c.Size()) {
		k.failed = fmt.Errorf("root %d is not a rank of the group, 0 to %d", root, c.Size()-1)
	}
	return k
}

// run has all members encode, compare, move and tell how it went. pack encodes what this replica gives. move moves the
// bytes, of which each member gives so many, and sets failed if what has come is no good.
func (k *call) run(ctx context.Context, pack func() ([]byte, error), move func(lengths []int, own []byte) error) error {
	if k.c.Size() == 0 {
		return fmt.Errorf("values: %s: nil Comm", k.name)
	}
	var own []byte
	if k.failed == nil {
		k.failed = protect(func() (err error) { own, err = pack(); return err })
	}
	if k.failed == nil && len(own) > MaxBytes {
		k.failed = fmt.Errorf("%d bytes, want at most %d", len(own), MaxBytes)
	}
	lengths, err := k.agree(ctx, len(own))
	if err != nil {
		return err
	}
	if err := move(lengths, own); err != nil {
		return fmt.Errorf("values: %s: %w", k.name, err)
	}
	_, err = k.agree(ctx, 0)
	return err
}

// agree tells all members what this one calls and whether it has failed, and returns how many bytes each gives. The
// error is one on all: that of the first member that has failed, or that calls differ.
func (k *call) agree(ctx context.Context, length int) ([]int, error) {
	if k.failed != nil {
		length = -1
	}
	all, err := gcl.AllGather(ctx, k.c, []int64{int64(length), int64(k.hash)})
	if err != nil {
		return nil, fmt.Errorf("values: %s: %w", k.name, err)
	}
	lengths, other := make([]int, k.c.Size()), -1
	bad := false
	for r := range lengths {
		n := all[2*r]
		bad = bad || n < 0 || n > MaxBytes
		lengths[r] = int(min(max(n, 0), MaxBytes))
		if other < 0 && all[2*r+1] != all[1] {
			other = r
		}
	}
	if !bad && other < 0 {
		return lengths, nil
	}
	text := k.what
	if k.failed != nil {
		text = k.failed.Error()
	}
	texts, err := k.texts(ctx, text)
	if err != nil {
		return nil, err
	}
	replicas := k.c.Members()
	if other >= 0 && !bad {
		if texts[0] == texts[other] {
			return nil, fmt.Errorf("values: %w: replicas %d and %d call %s, with types of one name and other packages or "+
				"fields", gcl.ErrMismatch, replicas[0], replicas[other], texts[0])
		}
		return nil, fmt.Errorf("values: %w: replica %d calls %s, replica %d calls %s", gcl.ErrMismatch, replicas[0],
			texts[0], replicas[other], texts[other])
	}
	first := 0
	for all[2*first] >= 0 && all[2*first] <= MaxBytes {
		first++
	}
	cause := errors.New(texts[first])
	if first == k.c.Rank() {
		cause = k.failed
	}
	return nil, fmt.Errorf("values: %s: replica %d: %w", k.name, replicas[first], cause)
}

// texts are what all members have to say, by rank.
func (k *call) texts(ctx context.Context, own string) ([]string, error) {
	own = own[:min(len(own), maxText)]
	counts, err := gcl.AllGather(ctx, k.c, []int{len(own)})
	if err == nil {
		var all []byte
		if all, err = gcl.AllGatherV(ctx, k.c, []byte(own), counts); err == nil {
			out := make([]string, len(counts))
			for r, n := range counts {
				out[r], all = string(all[:n]), all[n:]
			}
			return out, nil
		}
	}
	return nil, fmt.Errorf("values: %s: %w", k.name, err)
}

// maxText is how many bytes of an error of another replica, a panic's with its stack, are told.
const maxText = 8 << 10

// encode encodes a list of the value, or an empty list of nil: so what gob leaves out of a struct, as a zero behind a
// pointer, is there.
func encode[T any](v T) ([]byte, error) {
	r := reflect.ValueOf(&v).Elem()
	if err := newCycles().find(r); err != nil {
		return nil, err
	}
	list := []T{v}
	switch r.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		if r.IsNil() {
			list = []T{}
		}
	}
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(list)
	return b.Bytes(), err
}

func decode[T any](data []byte) (v T, err error) {
	var list []T
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&list); err != nil || len(list) == 0 {
		return v, err
	}
	return list[0], nil
}

// decodeAll decodes values that lie one after the other.
func decodeAll[T any](all []byte, lengths []int) ([]T, error) {
	out := make([]T, len(lengths))
	for r, n := range lengths {
		var err error
		if out[r], err = decode[T](all[:n]); err != nil {
			return nil, fmt.Errorf("the value of rank %d: %w", r, err)
		}
		all = all[n:]
	}
	return out, nil
}

// protect has a panic of f be its error.
func protect(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n\n%s", v, debug.Stack())
			if cause, is := v.(error); is {
				err = fmt.Errorf("panic: %w\n\n%s", cause, debug.Stack())
			}
		}
	}()
	return f()
}
