package remote

import (
	"fmt"
	"testing"
)

// BenchmarkEntries loads and stores the entries of 64 MiB in turn.
func BenchmarkEntries(b *testing.B) {
	for _, name := range []string{"memory", "native", "plain"} {
		for _, size := range []int{64, 4 << 10, 4 << 20} {
			var s Storage
			switch name {
			case "memory":
				s = Memory{}
			case "native":
				s = Dir(b.TempDir())
			case "plain":
				s = plainDir{Dir(b.TempDir())}
			}
			n := 64 << 20 / size
			e, err := s.Open(spec(n, size/4))
			if err != nil {
				b.Fatal(err)
			}
			buf := value(1, size)
			for i := range n {
				if err := e.Store(i, buf); err != nil {
					b.Fatal(err)
				}
			}
			for verb, do := range map[string]func(int, []byte) error{"load": e.Load, "store": e.Store} {
				b.Run(fmt.Sprintf("%s/storage=%s/size=%d", verb, name, size), func(b *testing.B) {
					b.SetBytes(int64(size))
					b.ReportAllocs()
					i := 0
					for b.Loop() {
						if err := do(i, buf); err != nil {
							b.Fatal(err)
						}
						i = (i + 1) % n
					}
				})
			}
			if err := e.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkOpen opens and closes a file of entries of 64 bytes that were all stored.
func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{1, 1 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			s := Dir(b.TempDir())
			e, err := s.Open(spec(n, 16))
			if err != nil {
				b.Fatal(err)
			}
			buf := value(1, 64)
			for i := range n {
				if err := e.Store(i, buf); err != nil {
					b.Fatal(err)
				}
			}
			if err := e.Close(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				e, err := s.Open(spec(n, 16))
				if err != nil {
					b.Fatal(err)
				}
				if err := e.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMake makes files of an entry.
func BenchmarkMake(b *testing.B) {
	s := Dir(b.TempDir())
	i := 0
	for b.Loop() {
		sp := spec(1, 16)
		i++
		sp.Buffer = fmt.Sprint(i)
		e, err := s.Open(sp)
		if err != nil {
			b.Fatal(err)
		}
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
