package watch

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteTable writes a line about a job, and one for each replica: those for whom the job waits first, then those of
// which nothing is known, then the others by number.
func (j *Job) WriteTable(w io.Writer) error {
	v := j.Judge()
	fmt.Fprintf(w, "job %s: %s\n", j.title(), v.summary())
	of := j.processes()
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "replica\thost\tpid\tsince\twaits for\tbytes/s\tdoes")
	for _, r := range j.order(v) {
		p := of[r]
		if p == nil {
			m := j.Missing[slices.IndexFunc(j.Missing, func(m Missing) bool { return m.Replica == r })]
			fmt.Fprintf(t, "%d\t\t%s\t\t\t\t%s\n", r, orBlank(m.PID), m.Why)
			continue
		}
		at := p.replica(r)
		does, since := at.does()
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", r, p.Host, orBlank(p.PID), since, Ranges(v.waitsFor(r)),
			bytesText(at.BytesPerSec), does)
		if slices.Contains(v.Sinks, r) && at.Stack != "" {
			fmt.Fprintf(t, "\t\t\t\t\t\t%s\n", shortStack(at.Stack, 1))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var lines []string
	for _, l := range Stragglers(Lateness(j.Processes)) {
		lines = append(lines, l.String())
	}
	if f := j.failure(); f != nil {
		lines = append(lines, "it has failed: "+firstLine(f.Error))
	}
	for _, l := range lines {
		if _, err := fmt.Fprintln(w, l); err != nil {
			return err
		}
	}
	return nil
}

// Explain says what became of a job, of which there are files, in five lines or so. complaints are those of ReadDir.
func (j *Job) Explain(complaints []string) []string {
	v := j.Judge()
	from := fmt.Sprintf("job %s: %s", j.title(), plural(len(j.Processes), "process"))
	var silent []int
	for _, m := range j.Missing {
		silent = append(silent, m.Replica)
	}
	if silent != nil {
		from += "; no file of " + named(silent)
	}
	of, lines := j.processes(), []string{from}
	for _, c := range complaints {
		lines = append(lines, "left out: "+c)
	}
	first := []int(nil)
	switch f := j.failure(); {
	case f == nil || f.Kind == Waited:
		if f != nil {
			lines = append(lines, "failed: "+firstLine(f.Error))
		}
		switch {
		case v.Sinks != nil:
			first = v.Sinks
			lines = append(lines, "first: "+named(v.Sinks)+", for whom the others wait")
		case v.Cycle != nil:
			first = v.Cycle
			lines = append(lines, "first: nobody; "+v.summary())
		default:
			lines = append(lines, "first: nobody waits for another")
		}
	case f.Kind == Disputed:
		lines = append(lines, "first: they disagree: "+firstLine(f.Error))
	case f.Replica < 0:
		lines = append(lines, "first: unknown: "+firstLine(f.Error))
	default:
		first = []int{f.Replica}
		name := fmt.Sprintf("replica %d", f.Replica)
		text := strings.TrimPrefix(strings.TrimPrefix(firstLine(f.Error), "gcl: "), name+": ")
		if !strings.HasPrefix(text, name+" ") {
			text = name + " " + kindText[f.Kind] + ": " + text
		}
		lines = append(lines, "first: "+text)
	}
	for _, r := range first {
		if p := of[r]; p != nil {
			does, since := p.replica(r).does()
			line := fmt.Sprintf("replica %d (pid %d on %s): %s", r, p.PID, p.Host, does)
			if since != "" {
				line += ", for " + since
			}
			if at := p.at(r); at != "" {
				line += "; " + shortStack(at, 2)
			}
			lines = append(lines, line)
		}
	}
	lines = append(lines, j.where(first)...)
	for _, l := range Stragglers(Lateness(j.Processes)) {
		lines = append(lines, "before: "+l.String())
	}
	return lines
}

var kindText = map[Kind]string{"": "has failed", Lost: "is lost", Left: "has left"}

// where says where replicas were, those who did the same in one line, but for some.
func (j *Job) where(but []int) (out []string) {
	groups, texts := map[string][]int{}, []string(nil)
	for r, at := range j.replicas() {
		if slices.Contains(but, r) {
			continue
		}
		does, _ := at.where()
		if groups[does] == nil {
			texts = append(texts, does)
		}
		groups[does] = append(groups[does], r)
	}
	for _, does := range texts {
		slices.Sort(groups[does])
	}
	slices.SortFunc(texts, func(a, b string) int {
		return cmp.Or(len(groups[b])-len(groups[a]), groups[a][0]-groups[b][0])
	})
	for _, does := range texts[:min(len(texts), maxWhere)] {
		out = append(out, named(groups[does])+": "+does)
	}
	if more := len(texts) - maxWhere; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return out
}

const maxWhere = 4

// failure is why the job has failed: what the replica says where it began, or else what most say.
func (j *Job) failure() (found *Failure) {
	votes := map[int]int{}
	for i := range j.Processes {
		p := &j.Processes[i]
		if p.Failure == nil {
			continue
		}
		if p.replica(p.Failure.Replica) != nil && p.Failure.Kind != Waited {
			return p.Failure
		}
		votes[p.Failure.Replica]++
		if found == nil || votes[p.Failure.Replica] > votes[found.Replica] {
			found = p.Failure
		}
	}
	return found
}

// title is the job's name, size and transport.
func (j *Job) title() string {
	out := cmp.Or(j.Name, "without a name")
	if j.Size > 0 {
		out += ", " + plural(j.Size, "replica")
	}
	if j.Transport != "" {
		out += " by " + j.Transport
	}
	return out
}

// summary says who waits for whom.
func (v *Verdict) summary() string {
	var from []int
	for _, e := range v.Edges {
		if !slices.Contains(from, e.From) {
			from = append(from, e.From)
		}
	}
	switch {
	case v.Sinks != nil:
		return fmt.Sprintf("%s for %s", plural(len(from), "waits", "wait"), named(v.Sinks))
	case v.Cycle != nil:
		var out strings.Builder
		for i, r := range v.Cycle {
			next := v.Cycle[(i+1)%len(v.Cycle)]
			e := v.Edges[slices.IndexFunc(v.Edges, func(e Edge) bool { return e.From == r && e.To == next })]
			fmt.Fprintf(&out, "replica %d waits in %s for replica %d, ", r, e.Call, next)
		}
		return strings.TrimSuffix(out.String(), ", ") + ": none can go on"
	}
	return "nobody waits for another"
}

// waitsFor is whom a replica waits for.
func (v *Verdict) waitsFor(replica int) (out []int) {
	for _, e := range v.Edges {
		if e.From == replica {
			out = append(out, e.To)
		}
	}
	return out
}

// order is all replicas, in the order of WriteTable.
func (j *Job) order(v Verdict) []int {
	var rest []int
	for r := range j.replicas() {
		rest = append(rest, r)
	}
	slices.Sort(rest)
	out, of := slices.Concat(v.Sinks, v.Cycle), j.processes()
	for _, m := range j.Missing {
		if !slices.Contains(out, m.Replica) {
			out = append(out, m.Replica)
		}
	}
	for _, r := range rest {
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return slices.DeleteFunc(out, func(r int) bool { // a replica that no process tells of, by an edge
		return of[r] == nil && !slices.ContainsFunc(j.Missing, func(m Missing) bool { return m.Replica == r })
	})
}

// replica is what a process says of one of its replicas, or nil.
func (p *Process) replica(number int) *Replica {
	for i := range p.Replicas {
		if p.Replicas[i].Replica == number {
			return &p.Replicas[i]
		}
	}
	return nil
}

// at says where the program of a replica is, or where its panic was, or "".
func (p *Process) at(replica int) string {
	if f := p.Failure; f != nil && f.Replica == replica {
		if _, stack, ok := strings.Cut(f.Error, "\n\ngoroutine "); ok {
			_, s, _ := stackOf("goroutine " + stack)
			return s
		}
	}
	return p.replica(replica).Stack
}

// does says what a replica does on all its connections, and for how long.
func (r *Replica) does() (text, since string) {
	text, at := r.where()
	if at > 0 {
		since = Brief(at).String()
	}
	return text, since
}

// where is the call that a replica is in, or the last one, and since when.
func (r *Replica) where() (text string, since time.Duration) {
	var parts []string
	for i := range r.Connections {
		c := &r.Connections[i]
		last, ok := c.Last()
		if !ok || !last.Inside {
			continue
		}
		part := last.Full()
		if len(r.Connections) > 1 {
			part += fmt.Sprintf(" on connection %d", c.Number)
		}
		parts = append(parts, part)
		since = max(since, last.Began)
	}
	if parts != nil {
		return "in " + strings.Join(parts, ", and in "), since
	}
	var latest *Call
	for i := range r.Connections {
		if last, ok := r.Connections[i].Last(); ok && (latest == nil || last.Over() < latest.Over()) {
			latest = &last
		}
	}
	switch {
	case r.Left && latest == nil:
		return "is gone", 0
	case r.Left:
		return "has left, after " + latest.Full(), 0
	case latest == nil:
		return "in no call, and has made none", 0
	}
	return "in no call, since " + latest.Full(), latest.Over()
}

func orBlank(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// plural is "1 replica" or "2 replicas"; several is the plural if it is not regular.
func plural(n int, one string, several ...string) string {
	if n == 1 {
		return "1 " + one
	}
	if several == nil {
		several = []string{one + "s"}
		if strings.HasSuffix(one, "s") {
			several[0] = one + "es"
		}
	}
	return fmt.Sprintf("%d %s", n, several[0])
}

// named is "replica 3", or "replicas 0-2, 5".
func named(replicas []int) string {
	if len(replicas) == 1 {
		return fmt.Sprintf("replica %d", replicas[0])
	}
	return "replicas " + Ranges(replicas)
}

// Ranges is numbers as in "0-2, 5".
func Ranges(numbers []int) string {
	var out []string
	for i := 0; i < len(numbers); {
		k := i
		for k+1 < len(numbers) && numbers[k+1] == numbers[k]+1 {
			k++
		}
		switch {
		case k > i+1:
			out = append(out, fmt.Sprintf("%d-%d", numbers[i], numbers[k]))
		default:
			for _, n := range numbers[i : k+1] {
				out = append(out, fmt.Sprint(n))
			}
		}
		i = k + 1
	}
	return strings.Join(out, ", ")
}

// bytesText is bytes a second, as in "1.2M".
func bytesText(n int64) string {
	if n == 0 {
		return ""
	}
	value, unit := float64(n), 0
	for value >= 1000 && unit < 4 {
		value, unit = value/1000, unit+1
	}
	return fmt.Sprintf("%.3g%s", value, []string{"", "k", "M", "G", "T"}[unit])
}

// shortStack is one of Stack with so many functions at most, and without directories.
func shortStack(text string, functions int) string {
	doing, rest, _ := strings.Cut(text, ", in ")
	parts := strings.Split(rest, ", ")
	for i, p := range parts {
		if name, place, ok := strings.Cut(p, " ("); ok {
			parts[i] = name + " (" + place[strings.LastIndexByte(place, '/')+1:]
		}
	}
	return doing + ", in " + strings.Join(parts[:min(len(parts), functions)], ", ")
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
