//go:build amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64

package segment

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pair is a segment and the same as another process maps it.
func pair(t testing.TB, form Form) (*Segment, *Peer) {
	t.Helper()
	s, err := Make(3, form)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Open(s.FD(), 3, form)
	if err != nil {
		s.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		s.Close()
	})
	return s, p
}

// heapPages are n bytes of an object of the heap that begin at a multiple of align. Nothing gives them back.
func heapPages(n, align int) []byte {
	all := make([]byte, n+align-1)
	first := -int(addressOf(all)) & (align - 1)
	return all[first : first+n : first+n]
}

// openPages are heapPages that are open, until the end of the test.
func openPages(t testing.TB, s *Segment, n, align int) []byte {
	t.Helper()
	b := heapPages(n, align)
	if err := s.OpenPages(b); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.ShutPages(b) })
	return b
}

// theirs are the bytes of b where another process has them.
func theirs(t testing.TB, s *Segment, p *Peer, b []byte) []byte {
	t.Helper()
	offset, ok := s.Offset(b)
	if !ok {
		t.Fatal("the pages are not open")
	}
	there, ok := p.Bytes(offset, uint64(len(b)))
	if !ok {
		t.Fatalf("offset %#x is not found", offset)
	}
	return there
}

// blocks are the 512 bytes that the segment takes.
func blocks(t testing.TB, s *Segment) int64 {
	t.Helper()
	var stat unix.Stat_t
	if err := unix.Fstat(s.FD(), &stat); err != nil {
		t.Fatal(err)
	}
	return stat.Blocks
}

// TestOpenPages: what one process writes to pages the other reads, also where only a part is asked for; they hold zeros
// when they are opened and when they are shut, and then are no longer shared.
func TestOpenPages(t *testing.T) {
	s, p := pair(t, paged)
	page := os.Getpagesize()
	openPages(t, s, page, page) // the others do not begin with a huge page of themselves
	for round := range 3 {
		for _, x := range []struct{ n, align int }{{page, page}, {3 * page, page}, {hugeBytes, hugeBytes},
			{2*hugeBytes + page, hugeBytes}, {hugeBytes, page}} {
			b := heapPages(x.n, x.align)
			for i := range b {
				b[i] = 1
			}
			before := blocks(t, s)
			if err := s.OpenPages(b); err != nil {
				t.Fatal(err)
			}
			there := theirs(t, s, p, b)
			if bytes.Count(b, []byte{0}) != x.n || bytes.Count(there, []byte{0}) != x.n {
				t.Fatalf("round %d: %d bytes are not zeros after OpenPages", round, x.n)
			}
			if got := blocks(t, s); got < before+int64(x.n/512) {
				t.Errorf("%d bytes: the segment has %d blocks, before %d: not in memory", x.n, got, before)
			}
			at, _ := s.Offset(b)
			if x.n >= hugeBytes && at%hugeBytes != 0 {
				t.Errorf("%d bytes lie at %#x, want a multiple of %#x", x.n, at, hugeBytes)
			}
			b[0], b[x.n-1] = 2, 3
			there[1], there[x.n-2] = 4, 5
			if there[0] != 2 || there[x.n-1] != 3 || b[1] != 4 || b[x.n-2] != 5 {
				t.Errorf("%d bytes: one does not see what the other writes", x.n)
			}
			if got, ok := s.Offset(b[10:17]); !ok || got != at+10 {
				t.Errorf("a part lies at %#x, %v, want %#x", got, ok, at+10)
			}
			s.ShutPages(b[:page/2]) // does nothing
			s.ShutPages(b)
			if bytes.Count(b, []byte{0}) != x.n {
				t.Errorf("%d bytes are not zeros after ShutPages", x.n)
			}
			if b[0] = 9; there[0] != 0 {
				t.Error("shared after ShutPages")
			}
			if _, ok := s.Offset(b); ok {
				t.Error("found after ShutPages")
			}
			s.ShutPages(b) // does nothing
			if b[0] != 9 {
				t.Error("shut twice")
			}
			there[0] = 0 // it is memory of the segment
			unix.Fallocate(s.FD(), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(at), int64(x.n))
			if got := blocks(t, s); got != before {
				t.Errorf("%d bytes: the segment has %d blocks, before %d", x.n, got, before)
			}
		}
	}
}

// TestAligned: a segment begins with a huge page of addresses in each process, and nothing else stays mapped.
func TestAligned(t *testing.T) {
	before := len(mappings(t))
	for range 5 {
		s, p := pair(t, paged)
		for _, m := range [][]byte{s.memory, p.memory, p.pages} {
			if addressOf(m)%hugeBytes != 0 {
				t.Errorf("a segment is at %#x", addressOf(m))
			}
		}
	}
	if after := len(mappings(t)); after > before+2*5+4 {
		t.Errorf("%d mappings, before %d, want two more for each of 5", after, before)
	}
}

// mappings are the lines of /proc/self/maps.
func mappings(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// TestOffset: only memory that lies in one block of open pages as a whole has an offset.
func TestOffset(t *testing.T) {
	s, _ := pair(t, paged)
	page := os.Getpagesize()
	if _, ok := s.Offset([]byte{1}); ok {
		t.Error("found before anything was opened")
	}
	all := heapPages(9*page, page)
	for _, at := range []int{5, 1, 3, 4} { // of pages; those in between are not open
		if err := s.OpenPages(all[at*page : (at+1)*page]); err != nil {
			t.Fatal(err)
		}
		defer s.ShutPages(all[at*page : (at+1)*page])
	}
	for _, x := range []struct {
		from, to int
		ok       bool
	}{
		{page, 2 * page, true}, {page, page + 1, true}, {2*page - 1, 2 * page, true}, {3*page + 7, 4*page - 7, true},
		{0, page, false}, {page - 1, page + 1, false}, {2*page - 1, 2*page + 1, false}, {2 * page, 2*page + 1, false},
		{2 * page, 4 * page, false}, {0, 9 * page, false}, {8 * page, 8*page + 1, false}, {6 * page, 7 * page, false},
		{3 * page, 5 * page, false}, // two blocks, which may lie apart
		{page, page, true}, {0, 0, true},
	} {
		if _, ok := s.Offset(all[x.from:x.to]); ok != x.ok {
			t.Errorf("bytes %d to %d: %v, want %v", x.from, x.to, ok, x.ok)
		}
	}
	if at, ok := s.Offset(nil); at != 0 || !ok {
		t.Errorf("nil: %#x, %v", at, ok)
	}
	if n := testing.AllocsPerRun(100, func() { s.Offset(all[page : 2*page]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestOpenPagesErrors: pages that cannot be opened are an error that says why, and stay ordinary memory.
func TestOpenPagesErrors(t *testing.T) {
	s, _ := pair(t, paged)
	page := os.Getpagesize()
	b := heapPages(8*page, page)
	refused := func(what string, s *Segment, pages []byte, want string) {
		t.Helper()
		if err := s.OpenPages(pages); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	refused("nothing", s, nil, "want whole pages")
	refused("a part of a page", s, b[:page+1], "want whole pages")
	refused("between pages", s, b[1:page+1], "want whole pages")
	if err := s.OpenPages(b[2*page : 4*page]); err != nil {
		t.Fatal(err)
	}
	defer s.ShutPages(b[2*page : 4*page])
	for _, x := range [][2]int{{2, 4}, {2, 3}, {3, 4}, {1, 3}, {3, 5}, {0, 8}} {
		refused("open already", s, b[x[0]*page:x[1]*page], "are in shared memory already")
	}
	for _, x := range [][2]int{{1, 2}, {4, 5}} { // neighbours
		if err := s.OpenPages(b[x[0]*page : x[1]*page]); err != nil {
			t.Error(err)
		}
		s.ShutPages(b[x[0]*page : x[1]*page])
	}
	long := heapPages(int(paged.Pages), page)
	long[0] = 5
	refused("more than there is", s, long, "no room for 20971520 bytes of pages: 8192 of 20971520 are in use")
	if _, ok := s.Offset(long); ok || long[0] != 5 {
		t.Error("what is refused is open")
	}
	none, _ := pair(t, small)
	refused("without pages", none, b[:page], "no room for 4096 bytes of pages: 0 of 0 are in use")

	// A descriptor that cannot be mapped so.
	broken, _ := pair(t, paged)
	fd := broken.fd
	broken.fd = -1
	refused("a bad descriptor", broken, b[:page], "mmap")
	broken.fd = fd
	if broken.pages.free.bytes() != int(paged.Pages) {
		t.Error("what was refused is not free")
	}
}

// TestNoMemory: pages for which the system has no memory are ordinary memory again. That a file ends stands for it.
func TestNoMemory(t *testing.T) {
	s, _ := pair(t, paged)
	for _, n := range []int{os.Getpagesize(), 2 * hugeBytes} {
		b := heapPages(n, hugeBytes)
		for _, at := range []int{int(paged.Bytes), int(paged.Bytes) - n/2&^(os.Getpagesize()-1)} {
			if err := sharePages(s.FD(), at, b); err == nil || !strings.Contains(err.Error(), "fallocate") {
				t.Errorf("%d bytes: %v, want one of fallocate", n, err)
			}
			for i := range b { // which ends the program if there is no memory
				b[i] = 1
			}
		}
	}
}

// TestMaxOpen: there is a limit to how many blocks are open, since each takes mappings of the process. It is one for
// all segments, also those that are closed.
func TestMaxOpen(t *testing.T) {
	s, _ := pair(t, paged)
	before := openBlocks.Load()
	other, _ := pair(t, paged)
	page := os.Getpagesize()
	first, b := heapPages(page, page), heapPages(page, page)
	if err := other.OpenPages(first); err != nil {
		t.Fatal(err)
	}
	others := int64(maxOpen-1) - before
	openBlocks.Add(others)
	defer func() {
		openBlocks.Add(-others)
		if got := openBlocks.Load(); got != before {
			t.Errorf("%d blocks count as open, want %d", got, before)
		}
	}()
	if err := s.OpenPages(b); err == nil || !strings.Contains(err.Error(), "no more may be") {
		t.Errorf("%v, want that no more may be", err)
	}
	other.closePages()
	if err := s.OpenPages(b); err == nil {
		t.Error("a block of a closed segment does not count")
	}
	other.ShutPages(first)
	if err := s.OpenPages(b); err != nil {
		t.Error(err)
	}
	s.ShutPages(b)
}

// TestRetire: after it pages hold what they held, and nobody else reaches them.
func TestRetire(t *testing.T) {
	s, p := pair(t, paged)
	page := os.Getpagesize()
	empty, _ := pair(t, paged)
	if err := empty.Retire(); err != nil {
		t.Error(err)
	}
	var all, there [][]byte
	for i, n := range []int{page, 3 * page, hugeBytes + page, 2 * hugeBytes} {
		b := openPages(t, s, n, hugeBytes)
		for k := range b {
			b[k] = byte(k*7 + i)
		}
		all, there = append(all, b), append(there, theirs(t, s, p, b))
	}
	// Other goroutines go on with their memory meanwhile.
	stop, stopped := make(chan struct{}), make(chan byte)
	go func() {
		b := all[3]
		for v := byte(0); ; v++ {
			for k := 0; k < len(b); k += page {
				if b[k] != v && v > 0 {
					t.Errorf("byte %d is %d, want %d", k, b[k], v)
				}
				b[k] = v + 1
			}
			select {
			case <-stop:
				stopped <- v + 1
				return
			default:
			}
		}
	}()
	if err := s.Retire(); err != nil {
		t.Fatal(err)
	}
	for i := range there {
		for k := range there[i] {
			there[i][k] = 0xee
		}
	}
	close(stop)
	last := <-stopped
	for i, b := range all {
		for k, v := range b {
			want := byte(k*7 + i)
			if i == 3 && k%page == 0 {
				want = last
			}
			if v != want {
				t.Fatalf("block %d: byte %d is %d, want %d", i, k, v, want)
			}
		}
		if _, ok := s.Offset(b); ok {
			t.Errorf("block %d is open", i)
		}
	}
	if err := s.OpenPages(heapPages(page, page)); err == nil || !strings.Contains(err.Error(), "are private") {
		t.Errorf("OpenPages after Retire: %v", err)
	}
	if err := s.Retire(); err != nil {
		t.Errorf("again: %v", err)
	}
	for i, b := range all {
		if s.ShutPages(b); bytes.Count(b, []byte{0}) != len(b) {
			t.Errorf("block %d is not zeros after ShutPages", i)
		}
	}
	if s.closePages(); s.Retire() == nil {
		t.Error("Retire after Close: no error")
	}
}

// TestPagesAfterClose: pages stay what they are after Close, and are shut after it, while the number of the descriptor
// is another file's.
func TestPagesAfterClose(t *testing.T) {
	s, err := Make(3, paged)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Open(s.FD(), 3, paged)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	b := heapPages(3*hugeBytes, hugeBytes)
	if err := s.OpenPages(b); err != nil {
		t.Fatal(err)
	}
	at, _ := s.Offset(b)
	there := theirs(t, s, p, b)
	there[10] = 10
	fd := s.FD()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	other, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	content := bytes.Repeat([]byte{1}, int(at)+len(b))
	if _, err := other.Write(content); err != nil {
		t.Fatal(err)
	}
	if int(other.Fd()) != fd {
		if err := unix.Dup3(int(other.Fd()), fd, unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
	}
	if _, ok := s.Offset(b); ok {
		t.Error("open after Close")
	}
	if err := s.OpenPages(heapPages(hugeBytes, hugeBytes)); err == nil || !strings.Contains(err.Error(), "is closed") {
		t.Errorf("OpenPages after Close: %v", err)
	}
	b[11] = 11
	if b[10] != 10 || there[11] != 11 {
		t.Error("memory has changed by Close")
	}
	s.ShutPages(b)
	if bytes.Count(b, []byte{0}) != len(b) {
		t.Error("not zeros after ShutPages")
	}
	if b[11] = 1; there[11] != 0 || there[10] != 0 {
		t.Error("shared after ShutPages, or not given back")
	}
	if got, err := os.ReadFile(other.Name()); err != nil || !bytes.Equal(got, content) {
		t.Errorf("another file was changed: %d bytes, %v", len(got), err)
	}
}

// TestPagesComeAndGo opens pages of objects that are then collected, 10,000 times: a finalizer gives them back. The
// segment takes no more memory, and the process no more mappings.
func TestPagesComeAndGo(t *testing.T) {
	rounds := 10_000
	if testing.Short() {
		rounds = 1000
	}
	s, _ := pair(t, paged)
	page := os.Getpagesize()
	start := len(mappings(t))
	var most int64
	for round := range rounds {
		n := page * (1 + round%17)
		for try := 0; ; try++ {
			err := open(s, n, page)
			if err == nil {
				break
			}
			if !strings.Contains(err.Error(), "no room") || try == 1000 {
				t.Fatal(round, err)
			}
			runtime.GC() // and finalizers, on a goroutine of their own
			runtime.Gosched()
		}
		if round%100 == 0 {
			runtime.GC()
		}
		most = max(most, blocks(t, s))
	}
	for range 100 {
		runtime.GC()
		s.pages.mu.Lock()
		left := len(s.pages.used)
		s.pages.mu.Unlock()
		if left == 0 {
			break
		}
	}
	s.pages.mu.Lock()
	defer s.pages.mu.Unlock()
	if len(s.pages.used) != 0 || s.pages.free.bytes() != int(paged.Pages) {
		t.Errorf("%d blocks are open, %d bytes are free", len(s.pages.used), s.pages.free.bytes())
	}
	if got := blocks(t, s); got > blocksAt/512 || most > paged.Pages/512+blocksAt/512 {
		t.Errorf("the segment takes %d KiB, and took %d", got/2, most/2)
	}
	if end := len(mappings(t)); end > start+100 {
		t.Errorf("%d mappings, before %d", end, start)
	}
}

// open opens pages of a new object, whose finalizer shuts them.
func open(s *Segment, n, align int) error {
	all := make([]byte, n+align-1)
	whole, first := len(all), -int(addressOf(all))&(align-1)
	if err := s.OpenPages(all[first : first+n]); err != nil {
		return err
	}
	runtime.SetFinalizer(unsafe.SliceData(all), func(p *byte) { s.ShutPages(unsafe.Slice(p, whole)[first : first+n]) })
	for i := first; i < first+n; i += 512 {
		all[i] = 1
	}
	return nil
}

// TestPagesHuge reports whether both mappings of pages are in huge pages, which is up to the system.
func TestPagesHuge(t *testing.T) {
	s, p := pair(t, paged)
	b := openPages(t, s, 4*hugeBytes, hugeBytes)
	there := theirs(t, s, p, b)
	for i := 0; i < len(b); i += os.Getpagesize() {
		b[i] = 1
		there[i]++
	}
	mine, other := hugeKB(t, b), hugeKB(t, there)
	t.Logf("%d and %d of %d KiB are mapped by huge pages", mine, other, len(b)>>10)
	if mine == 0 {
		t.Skip("the system has not put the pages together (MADV_COLLAPSE needs Linux 6.1, and free huge pages)")
	}
	if mine != len(b)>>10 || other != len(b)>>10 {
		t.Errorf("%d and %d KiB are mapped by huge pages, want %d", mine, other, len(b)>>10)
	}
}

// hugeKB is how many KiB of the mapping that b lies in are mapped by huge pages.
func hugeKB(t testing.TB, b []byte) (sum int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	from, to := addressOf(b), addressOf(b)+uintptr(len(b))
	inside := false
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if !strings.HasSuffix(fields[0], ":") {
			lo, hi, _ := strings.Cut(fields[0], "-")
			first, err1 := strconv.ParseUint(lo, 16, 64)
			last, err2 := strconv.ParseUint(hi, 16, 64)
			if err1 != nil || err2 != nil {
				t.Fatalf("smaps: %q", line)
			}
			inside = uintptr(first) < to && uintptr(last) > from
			continue
		}
		if inside && (fields[0] == "ShmemPmdMapped:" || fields[0] == "FilePmdMapped:") {
			n, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatalf("smaps: %q", line)
			}
			sum += n
		}
	}
	return sum
}

// BenchmarkOffset asks where memory lies, as each call does for each buffer.
func BenchmarkOffset(b *testing.B) {
	s, _ := pair(b, paged)
	page := os.Getpagesize()
	for _, n := range []int{1, 16, 1000} {
		var x []byte
		for len(s.pages.used) < n {
			x = openPages(b, s, page, page)
		}
		b.Run(fmt.Sprintf("blocks=%d", n), func(b *testing.B) {
			for b.Loop() {
				if _, ok := s.Offset(x); !ok {
					b.Fatal("not found")
				}
			}
		})
	}
}

// BenchmarkOpenPages opens and shuts.
func BenchmarkOpenPages(b *testing.B) {
	s, _ := pair(b, Form{Bytes: 260 << 20, Ring: 16 << 10, Pages: 256 << 20})
	for _, n := range []int{os.Getpagesize(), 1 << 20, 64 << 20} {
		pages := heapPages(n, hugeBytes)
		b.Run(fmt.Sprintf("bytes=%d", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				if err := s.OpenPages(pages); err != nil {
					b.Fatal(err)
				}
				s.ShutPages(pages)
			}
		})
	}
}

// TestRetireAgain: pages that could not be made private are tried again, and count as shared until then: a caller that
// takes them for private would have another process write into them. What has been written since stays.
func TestRetireAgain(t *testing.T) {
	s, p := pair(t, paged)
	page := os.Getpagesize()
	lost, kept := openPages(t, s, page, page), openPages(t, s, page, page)
	there := theirs(t, s, p, kept)
	fd := s.fd
	s.fd = -1
	for range 2 {
		if s.Retire() == nil {
			t.Fatal("no error of pages that have no file")
		}
	}
	s.ShutPages(lost)
	kept[0] = 1
	s.fd = fd
	if err := s.Retire(); err != nil {
		t.Fatal(err)
	}
	there[0] = 2
	if kept[0] != 1 || lost[0] != 0 {
		t.Errorf("the pages hold %d and %d, want 1 and 0", kept[0], lost[0])
	}
	kept[0] = 3
	if err := s.Retire(); err != nil || kept[0] != 3 {
		t.Errorf("once more: %v, and the page holds %d, want 3", err, kept[0])
	}
}
