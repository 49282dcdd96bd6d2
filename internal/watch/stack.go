package watch

import (
	"runtime"
	"strings"
)

// What bounds Stack.
const (
	maxStackBytes = 1 << 20
	maxStacks     = 8
	maxFrames     = 4
)

// bodies is the function of package gcl that calls those of programs.
const bodies = "gogcl.dev/gcl.guard"

// runs begins the names of the functions that programs call which call guard.
const runs = "gogcl.dev/gcl.Run"

// Stack says where the goroutines of a program are that make collectives, or that main has begun, outside of this
// module and of the standard library: "sync.Mutex.Lock, in main.work (/src/main.go:42), main.main (/src/main.go:20)".
// All goroutines stand still while it looks.
func Stack() []string {
	room := make([]byte, maxStackBytes)
	var inside, others []string
	for _, text := range strings.Split(string(room[:runtime.Stack(room, true)]), "\n\n") {
		switch s, body := stackOf(text); {
		case s == "":
		case body:
			inside = append(inside, s)
		default:
			others = append(others, s)
		}
	}
	if inside != nil { // main only waits for them
		return inside[:min(len(inside), maxStacks)]
	}
	return others
}

// stackOf is Stack of one goroutine, or "" if it is none of those. body says that package gcl has called it.
func stackOf(text string) (s string, body bool) {
	head, rest, _ := strings.Cut(text, "\n")
	lines := strings.Split(rest, "\n")
	var frames []string
	doing, isMain := "", false
	for i := 0; i+1 < len(lines); i += 2 {
		name, place := lines[i], strings.TrimSpace(lines[i+1])
		if by, created := strings.CutPrefix(name, "created by "); created {
			body = body || strings.HasPrefix(by, bodies)
			break
		}
		if at := strings.LastIndexByte(name, '('); at > 0 {
			name = name[:at]
		}
		if strings.HasPrefix(name, bodies) {
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
	waits := strings.HasPrefix(doing, runs) && !body // in Run or RunProcess, for a body that has returned
	if !body && !isMain || frames == nil || waits {
		return "", false
	}
	if _, wait, ok := strings.Cut(head, "["); ok && doing == "" {
		doing, _, _ = strings.Cut(wait, "]")
	}
	return doing + ", in " + strings.Join(frames, ", "), body
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
