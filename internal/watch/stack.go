package watch

import (
	"runtime"
	"strconv"
	"strings"
)

// What bounds Stacks.
const (
	maxStackBytes = 1 << 20
	maxFrames     = 4
	maxGoroutines = 2000 // they all stand still meanwhile
)

// guard is the function of package gcl that calls those of programs.
const guard = "gogcl.dev/gcl.guard"

// runs begins the names of the functions that programs call which call guard.
const runs = "gogcl.dev/gcl.Run"

// Stacks says where goroutines are, outside of this module and of the standard library: "sync.Mutex.Lock, in main.work
// (/src/main.go:42), main.main (/src/main.go:20)". bodies are the numbers of goroutines by replica. A process of one
// replica that has none is where main is. Where there are very many goroutines nobody looks.
func Stacks(bodies map[int]uint64) map[int]string {
	if runtime.NumGoroutine() > maxGoroutines {
		return nil
	}
	room := make([]byte, maxStackBytes)
	numbers, main := map[uint64]string{}, ""
	for text := range strings.SplitSeq(string(room[:runtime.Stack(room, true)]), "\n\n") {
		number, s, isMain := stackOf(text)
		if numbers[number] = s; isMain {
			main = s
		}
	}
	out := map[int]string{}
	for replica, number := range bodies {
		switch s := numbers[number]; {
		case s != "":
			out[replica] = s
		case number == 0 && len(bodies) == 1:
			out[replica] = main
		}
	}
	return out
}

// stackOf is Stacks of one goroutine and its number, "" if it is nowhere else. isMain says that main has called it.
func stackOf(text string) (number uint64, s string, isMain bool) {
	head, rest, _ := strings.Cut(text, "\n")
	lines := strings.Split(rest, "\n")
	var frames []string
	doing, body := "", false
	for i := 0; i+1 < len(lines); i += 2 {
		name, place := lines[i], strings.TrimSpace(lines[i+1])
		if strings.HasPrefix(name, "created by ") {
			break
		}
		if at := strings.LastIndexByte(name, '('); at > 0 {
			name = name[:at]
		}
		if strings.HasPrefix(name, guard) {
			if body = true; frames == nil { // what notes a panic
				continue
			}
			break
		}
		isMain = isMain || name == "main.main"
		place, _, _ = strings.Cut(place, " +0x")
		switch {
		case ours(name):
			if frames == nil {
				doing = name
			}
		case standard(name):
			if doing == "" && !strings.HasPrefix(name, "runtime") && !strings.HasPrefix(name, "internal/") {
				doing = name
			}
		case len(frames) < maxFrames:
			frames = append(frames, name+" ("+place+")")
		}
	}
	head = strings.TrimPrefix(head, "goroutine ")
	digits, wait, _ := strings.Cut(head, " [")
	number, _ = strconv.ParseUint(digits, 10, 64)                 // 0 is none
	if frames == nil || strings.HasPrefix(doing, runs) && !body { // or in Run, for a body that has returned
		return number, "", isMain
	}
	if doing == "" {
		doing, _, _ = strings.Cut(wait, "]")
	}
	return number, doing + ", in " + strings.Join(frames, ", "), isMain
}

// ours reports whether a function is of this library. Its tests are not, nor the program internal/trouble, which in its
// tests has its path for a name.
func ours(name string) bool {
	return strings.HasPrefix(name, "gogcl.dev/") && !strings.HasPrefix(name, "gogcl.dev/internal/trouble.") &&
		!strings.Contains(name, "_test.")
}

// standard reports whether a function is of the standard library: the first part of its path has no dot.
func standard(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	if !strings.Contains(name, "/") {
		first, _, _ = strings.Cut(name, ".")
		return first != "main"
	}
	return !strings.Contains(first, ".")
}
