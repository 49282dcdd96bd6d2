package remote

import (
	"fmt"
	"testing"
)

// BenchmarkEntries loads and stores the entries of 64 MiB in turn.
func BenchmarkEntries(b *testing.B) {
	for _, name := range []string{"memory", "native", "plain"} {
		for _, size := range []int{4 << 10, 4 << 20} {
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
				b.Run(fmt.Sprintf("%s/storage=%s/size=%dKiB", verb, name, size>>10), func(b *testing.B) {
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
