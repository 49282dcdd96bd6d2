package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"gogcl.dev/tensor"
)

// post is where processes put messages for each other, by sender and receiver.
type post struct {
	mu    sync.Mutex // guards boxes
	boxes map[[2]int]chan []byte
}

func (p *post) box(from, to int) chan []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.boxes == nil {
		p.boxes = map[[2]int]chan []byte{}
	}
	if p.boxes[[2]int{from, to}] == nil {
		p.boxes[[2]int{from, to}] = make(chan []byte, 100)
	}
	return p.boxes[[2]int{from, to}]
}

// carry is a Carry of a replica.
func (p *post) carry(me int) Carry {
	return func(_ context.Context, messages []Message) error {
		for _, m := range messages {
			if m.Send != nil {
				p.box(me, m.To) <- slices.Clone(m.Send)
			}
			if m.Recv != nil {
				got := <-p.box(m.From, me)
				if len(got) != len(m.Recv) {
					return fmt.Errorf("%d bytes, want %d", len(got), len(m.Recv))
				}
				copy(m.Recv, got)
			}
		}
		return nil
	}
}

// shared is two tensors of 10 and 3 elements, of which each of n processes has a shard.
type shared struct {
	n      int
	values [][]float32 // by tensor and shard
}

// newShared has elements first, first+1 and so on.
func newShared(n int, first float32) *shared {
	s := &shared{n: n}
	for _, length := range []int{10, 3} {
		per := (length + n - 1) / n
		all := make([]float32, per*n)
		for i := range length {
			all[i] = first
			first++
		}
		for k := range n {
			s.values = append(s.values, all[k*per:(k+1)*per])
		}
	}
	return s
}

// tensors are those of a process.
func (s *shared) tensors(me int) []Tensor {
	var out []Tensor
	for i, length := range []int{10, 3} {
		at := func(k int) []float32 { return s.values[i*s.n+k] }
		out = append(out, Tensor{
			Name: fmt.Sprint("t", i), DType: tensor.F32, Shape: tensor.Shape{length}, Shards: s.n,
			Own:  func(k int) bool { return k == me },
			Read: func(k int) (*tensor.Tensor, error) { return tensor.FromSlice(slices.Clone(at(k)), len(at(k))) },
			Write: func(k int, t *tensor.Tensor) error {
				v, err := tensor.Of[float32](t)
				copy(at(k), v)
				return err
			},
		})
	}
	return out
}

// meta is a function for strings.
func meta(text string) func() (map[string]string, error) {
	return func() (map[string]string, error) { return map[string]string{"at": text}, nil }
}

// restoreAll calls Restore of all memories, with state of their own, and returns that, the strings and the errors.
func restoreAll(t *testing.T, memories []*Memory, first float32) (*shared, []map[string]string, []error) {
	p, s, out := &post{}, newShared(len(memories), first), make([]map[string]string, len(memories))
	errs := together(len(memories), func(g *guest) (err error) {
		out[g.replica], err = memories[g.replica].Restore(t.Context(), g, p.carry(g.replica), s.tensors(g.replica),
			meta(fmt.Sprint("restored ", first)))
		return err
	})
	return s, out, errs
}

// TestMemory: what some of n processes have is restored on however many there are then, and new ones.
func TestMemory(t *testing.T) {
	for n := 2; n <= 5; n++ {
		for dead := range n {
			for fresh := range 3 {
				var memories []*Memory
				for range n {
					memories = append(memories, &Memory{})
				}
				_, texts, errs := restoreAll(t, memories, 1)
				if err := errors.Join(errs...); err != nil || texts[0] != nil {
					t.Fatalf("%v, error %v", texts, err)
				}
				memories = slices.Delete(memories, dead, dead+1)
				for range fresh {
					memories = append(memories, &Memory{})
				}
				got, texts, errs := restoreAll(t, memories, 100)
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
				want := newShared(len(memories), 1)
				for i := range want.values {
					if !slices.Equal(got.values[i], want.values[i]) {
						t.Errorf("n=%d dead=%d fresh=%d: %v, want %v", n, dead, fresh, got.values, want.values)
						break
					}
				}
				for _, text := range texts {
					if text["at"] != "restored 1" {
						t.Errorf("strings %v", texts)
					}
				}
			}
		}
	}
}

// TestMemoryAgain: what was restored is restored again, with the strings of the copy: those that Restore asks for are
// of a caller that has not gone back yet.
func TestMemoryAgain(t *testing.T) {
	memories := []*Memory{{}, {}, {}}
	for i := range 3 {
		got, texts, errs := restoreAll(t, memories, float32(1+100*i))
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if i > 0 && (texts[0]["at"] != "restored 1" || got.values[0][0] != 1) {
			t.Errorf("restored for the %d. time: strings %v, first value %v", i, texts[0], got.values[0][0])
		}
		memories = memories[1:]
	}
}

// TestMemoryOfTwoCopies: a copy that is not complete is used where all its files are there, and else the one before.
func TestMemoryOfTwoCopies(t *testing.T) {
	for _, c := range []struct {
		name         string
		dead         int
		sends, whole bool
		want         string
	}{
		{"nothing is sent", 1, false, false, "restored 1"},
		{"nothing is sent, and nobody dies", -1, false, false, "second"},
		{"all is sent", 1, true, false, "second"},
		{"all is complete", 1, true, true, "second"},
	} {
		memories := []*Memory{{}, {}, {}}
		s, _, errs := restoreAll(t, memories, 1)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		p := &post{}
		for i := range s.values {
			for j := range s.values[i] {
				s.values[i][j] += 1000
			}
		}
		for _, m := range memories {
			if err := m.Copy(t.Context(), meta("second")); err != nil {
				t.Fatal(err)
			}
		}
		errs = together(3, func(g *guest) error {
			if !c.sends {
				return nil
			}
			return memories[g.replica].Send(t.Context(), p.carry(g.replica))
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if c.whole {
			memories[0].Complete()
		}
		if c.dead >= 0 {
			memories = slices.Delete(memories, c.dead, c.dead+1)
		}
		got, texts, errs := restoreAll(t, memories, 500)
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		first := float32(1)
		if c.want == "second" {
			first = 1001
		}
		if texts[0]["at"] != c.want || got.values[0][0] != first {
			t.Errorf("%s: %v and %v, want %s", c.name, texts[0], got.values[0], c.want)
		}
	}
}

// TestMemoryLost: files that nobody has are an error on all, who hold nothing then, and the next Restore begins anew.
func TestMemoryLost(t *testing.T) {
	memories := []*Memory{{}, {}, {}, {}}
	if _, _, errs := restoreAll(t, memories, 1); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	memories = []*Memory{memories[0], memories[3], {}}
	s, _, errs := restoreAll(t, memories, 7)
	for _, err := range errs {
		var lost *LostError
		if !errors.As(err, &lost) || !slices.Equal(lost.Replicas, []int{1, 2}) || !slices.Equal(lost.Files, []int{1}) {
			t.Errorf("%v, want a LostError of replicas 1 and 2", err)
		}
	}
	if s.values[0][0] != 7 {
		t.Errorf("%v is written", s.values)
	}
	if _, texts, errs := restoreAll(t, memories, 7); errors.Join(errs...) != nil || texts[0] != nil {
		t.Errorf("%v, error %v", texts, errs)
	}
}

// TestMemoryLeftBehind: what a process has that the others have gone on without does not count when it is back.
func TestMemoryLeftBehind(t *testing.T) {
	memories := []*Memory{{}, {}, {}}
	if _, _, errs := restoreAll(t, memories, 1); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	if _, _, errs := restoreAll(t, memories[2:], 50); errors.Join(errs...) == nil { // it is alone, and has lost shard 0
		t.Fatal("there is no error")
	}
	if _, _, errs := restoreAll(t, memories[2:], 50); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	if _, _, errs := restoreAll(t, memories[:2], 70); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	for _, m := range memories[:2] {
		if m.copies[0].Epoch != 2 {
			t.Errorf("epoch %d, want 2", m.copies[0].Epoch)
		}
	}
	m := memories[2] // pretends to be of the same number
	m.copies[0].Epoch, m.epoch = 2, 2
	got, texts, errs := restoreAll(t, memories, 90)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if first := got.values[0][0]; texts[0]["at"] != fmt.Sprint("restored ", first) || first != 1 && first != 50 {
		t.Errorf("strings %v of a state from %v on", texts, first)
	}
	for i := 1; i < 4; i++ { // all are of one state
		if got.values[0][i] != got.values[0][0]+float32(i) {
			t.Errorf("%v is of two states", got.values[:3])
		}
	}
}

// TestMemoryDamaged: a bit of a file that differs is an error on all, and nothing is written.
func TestMemoryDamaged(t *testing.T) {
	for part := range 2 { // own, kept
		memories := []*Memory{{}, {}, {}}
		if _, _, errs := restoreAll(t, memories, 1); errors.Join(errs...) != nil {
			t.Fatal(errs)
		}
		h := memories[1].last()
		k := []int{1, 0}[part]
		h.parts[k][len(h.parts[k])-1] ^= 1
		if part == 1 {
			memories = memories[1:]
		}
		s, _, errs := restoreAll(t, memories, 50)
		for _, err := range errs {
			if err == nil || !strings.Contains(err.Error(), "it is damaged: checksum") {
				t.Errorf("%v, want one of a damaged file", err)
			}
		}
		if s.values[0][0] != 50 {
			t.Errorf("%v is written", s.values)
		}
	}
}

// TestMemoryErrors: an error of one process is an error on all.
func TestMemoryErrors(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name, want string
		change     func(tensors []Tensor)
	}{
		{"a Read fails", "boom", func(tensors []Tensor) {
			tensors[1].Read = func(int) (*tensor.Tensor, error) { return nil, boom }
		}},
		{"another shape", "saves other tensors", func(tensors []Tensor) { tensors[1].Shape = tensor.Shape{4} }},
		{"a file in parts", "those of one number are to be together", func(tensors []Tensor) {
			tensors[1].Own = func(int) bool { return false }
		}},
	} {
		p, s := &post{}, newShared(3, 1)
		errs := together(3, func(g *guest) error {
			tensors := s.tensors(g.replica)
			if g.replica == 1 {
				c.change(tensors)
			}
			_, err := new(Memory).Restore(t.Context(), g, p.carry(g.replica), tensors, meta(""))
			return err
		})
		for r, err := range errs {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: replica %d: %v, want %s", c.name, r, err, c.want)
			}
		}
	}
	var none Memory
	if err := none.Copy(t.Context(), meta("")); err == nil || !strings.Contains(err.Error(), "a Restore before it") {
		t.Error(err)
	}
	err := none.Send(t.Context(), new(post).carry(0))
	if err == nil || !strings.Contains(err.Error(), "a Copy before it") {
		t.Error(err)
	}
}

// TestKeepers: each replica keeps the files of one, on another host where that can be.
func TestKeepers(t *testing.T) {
	for hosts, want := range map[string]int{ // replicas whose files stay on their host
		"a": 1, "aa": 2, "aaaa": 4, "ab": 0, "abc": 0, "aabb": 0, "abab": 0, "aabbbc": 0, "aaabbc": 0, "aaab": 2,
		"abba": 0, "aaaab": 3, "aabbcc": 0, "aaaabbbb": 0, "aabc": 0,
	} {
		names := strings.Split(hosts, "")
		keeper := keepers(names)
		same, seen := 0, map[int]bool{}
		for r, k := range keeper {
			if seen[k] || k == r && len(names) > 1 {
				t.Errorf("%s: %v", hosts, keeper)
			}
			if seen[k] = true; names[r] == names[k] {
				same++
			}
		}
		if same != want {
			t.Errorf("%s: %v, %d on their host, want %d", hosts, keeper, same, want)
		}
	}
	if got := keepers([]string{"a", "a", "a"}); !slices.Equal(got, []int{1, 2, 0}) {
		t.Errorf("on one host %v, want the next", got)
	}
}
