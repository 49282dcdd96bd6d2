package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/machine"
	"gogcl.dev/internal/measure"
)

// samples are what was measured on one machine over one transport. A file has the origin in its first line, and a point
// in each of the others.
type samples struct {
	origin
	points []point
}

// origin says where, when and how samples were measured.
type origin struct {
	measure.Origin
	Name      string `json:"name"` // of the machine: see package machine
	Transport string `json:"transport"`
	Operator  string `json:"operator"`
	DType     string `json:"dtype"`
	Passes    int    `json:"passes"` // at most
}

func (s *settings) origin(args []string, now time.Time) origin {
	at := measure.NewOrigin("", now)
	at.Settings = "gcltune " + strings.Join(args, " ")
	if text := measure.Overrides(); text != "" {
		at.Settings = "GCL_OPTIONS='" + text + "' " + at.Settings
	}
	return origin{Origin: at, Name: machine.Name(), Transport: s.Transport, Operator: s.Op.String(),
		DType: s.DType.String(), Passes: s.passes}
}

// heading are the comments above rules: where, when and how they were measured.
func (o *origin) heading() string {
	medians := "One pass"
	if o.Passes > 1 {
		medians = fmt.Sprintf("Medians of up to %d passes", o.Passes)
	}
	return fmt.Sprintf("# %s\n# %s, %s, transport %s, gogcl.dev %s\n# %s, %s %s. docs/design/tuning.md says how the methods were "+
		"chosen.\n", asComment(o.Settings), asComment(o.where()), asComment(o.Date), asComment(o.Transport),
		asComment(o.Version), medians, asComment(o.Operator), asComment(o.DType))
}

// where is the machine's name, or what is known of it.
func (o *origin) where() string {
	if o.Name != "" {
		return o.Name
	}
	return fmt.Sprintf("%s, %d cores", o.Machine, o.Cores)
}

// asComment makes a text fit for a comment of a table.
func asComment(text string) string {
	const most = 900 // bytes
	line := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
	if len(line) > most {
		return strings.ToValidUTF8(line[:most], "") + " ..."
	}
	return line
}

// encode is the text of a file.
func (s *samples) encode() ([]byte, error) {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(s.origin); err != nil {
		return nil, err
	}
	err := writePoints(&b, s.points)
	return b.Bytes(), err
}

// writePoints prints points, one on a line.
func writePoints(w io.Writer, points []point) error {
	e := json.NewEncoder(w)
	for _, p := range points {
		if err := e.Encode(p); err != nil {
			return err
		}
	}
	return nil
}

// readSamples reads a file of samples.
func readSamples(file string) (s samples, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return s, err
	}
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	d := json.NewDecoder(bytes.NewReader(first))
	d.DisallowUnknownFields()
	if err := d.Decode(&s.origin); err != nil {
		return s, fmt.Errorf("%s is no file of samples: its first line: %w", file, err)
	}
	if s.points, err = readPoints(bytes.NewReader(rest)); err != nil {
		return s, fmt.Errorf("%s: %w", file, err)
	}
	if len(s.points) == 0 {
		return s, fmt.Errorf("%s has no points", file)
	}
	return s, nil
}

// readPoints reads what writePoints has printed.
func readPoints(r io.Reader) ([]point, error) {
	var out []point
	for d := json.NewDecoder(r); ; {
		var p point
		err := d.Decode(&p)
		if err == io.EOF {
			return out, nil
		}
		if err == nil {
			err = p.check()
		}
		if err != nil {
			return nil, fmt.Errorf("after %d points: %w", len(out), err)
		}
		out = append(out, p)
	}
}

// check reports a point that no measurement gives.
func (p *point) check() error {
	if p.N < 2 || p.N > measure.MaxReplicas || p.Size < 1 || len(p.Ways) == 0 {
		return fmt.Errorf("%d replicas, %d bytes and %d ways, want 2 to %d, 1 or more and 1 or more", p.N, p.Size,
			len(p.Ways), measure.MaxReplicas)
	}
	for _, t := range p.Ways {
		if len(t.Times) == 0 || slices.ContainsFunc(t.Times, func(us float64) bool { return !(us > 0) }) {
			return fmt.Errorf("%s of %s with times of %v, want one or more, each above 0", t.Way, p.Collective, t.Times)
		}
	}
	return nil
}

// micro is a time in microseconds, to four digits: more are never the same again.
func micro(seconds float64) float64 {
	us, err := strconv.ParseFloat(strconv.FormatFloat(measure.Micro(seconds), 'g', 4, 64), 64)
	if err != nil {
		panic(err) // it is a number's own text
	}
	return us
}

// tableOf makes a table of samples, as text: of one machine that machine's, of several one of what gains on each.
func tableOf(all []samples) ([]byte, error) {
	if len(all) == 1 {
		return rulesOf(all[0].points, all[0].heading())
	}
	for i, s := range all {
		for _, other := range all[:i] {
			if s.Transport != other.Transport {
				return nil, fmt.Errorf("samples over %s and over %s: want one transport", other.Transport, s.Transport)
			}
			if s.Name == other.Name {
				return nil, fmt.Errorf("two files of samples are of one machine, %s: want one of each", s.where())
			}
		}
		if s.Name == "" {
			return nil, errors.New("samples of a machine without a name, which may be that of the others")
		}
	}
	return gainsOn(all)
}

// readFrom reads the files of -from, and finds the one of -table.
func (p *program) readFrom() (table string, all []samples, err error) {
	for _, name := range slices.Sorted(maps.Keys(p.given)) {
		if name != "from" && name != "table" {
			return "", nil, fmt.Errorf("%s does not go with -from, which measures nothing", p.given.As(name))
		}
	}
	if p.raw.table == "" {
		return "", nil, errors.New("-from wants -table, the file for the rules")
	}
	if table, err = checkReplaceable("-table", p.raw.table); err != nil {
		return "", nil, err
	}
	for name := range strings.SplitSeq(p.raw.from, ",") {
		s, err := readSamples(name)
		if err != nil {
			return "", nil, fmt.Errorf("-from: %w", err)
		}
		all = append(all, s)
	}
	return table, all, nil
}

// fromSamples makes a table of files. It returns the exit code.
func (p *program) fromSamples() int {
	file, all, err := p.readFrom()
	if err != nil {
		p.Complain(err)
		return command.Usage
	}
	text, err := tableOf(all)
	return p.writeTable(p.raw.table, file, text, err, "made of "+p.raw.from)
}

// writeTable puts the text of a table into a file, unless it could not be made. It returns the exit code.
func (p *program) writeTable(name, file string, text []byte, err error, how string) int {
	if err == nil {
		err = p.put(file, text)
	}
	if err != nil {
		p.Complain(err)
		return command.Failed
	}
	n, rules := strings.Count(string(text), "\n")-strings.Count("\n"+string(text), "\n#"), "rules"
	if n == 1 {
		rules = "rule"
	}
	fmt.Fprintf(p.Stdout, "%s has %d %s, %s\n", name, n, rules, how)
	return command.OK
}

// put writes a file whole. What finds no place there goes to standard output: minutes of measuring shall not be lost.
func (p *program) put(file string, text []byte) error {
	err := replaceFile(file, text)
	if err != nil {
		fmt.Fprintf(p.Stdout, "%s", text)
	}
	return err
}
