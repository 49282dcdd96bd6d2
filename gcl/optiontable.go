package gcl

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"gogcl.dev/internal/recent"
	"gogcl.dev/methods"
)

// tuningKey is the key of Options.Tuning.
const tuningKey = "tuning"

// table is the option Options.Tuning. A text with a line break is the table itself, any other the name of its file.
type table struct{}

func (table) set(o *Options, text string) bool {
	rules, err := readRules(text)
	if err == nil {
		o.Tuning = rules
	}
	return err == nil
}

func (table) text(o *Options) (text string, usual bool) {
	switch {
	case o.Tuning == nil:
		return "", true
	case o.Tuning.Name() != "" && !strings.Contains(o.Tuning.Name(), "\n"):
		return o.Tuning.Name(), false
	}
	return "\n" + o.Tuning.String(), false // with a line break, also if it is empty
}

func (table) check(*Options) (value, want string) { return "", "" }

func (table) wants(text string) string {
	_, err := readRules(text)
	var wrong *methods.RulesError
	switch {
	case errors.As(err, &wrong):
		return wrong.Words()
	case err == nil: // the file has come meanwhile
		return wantTable
	}
	return err.Error()
}

func (table) list() string {
	return "a file, or with a line break the table itself; default: the machine's"
}

// readRules reads the table that a text stands for. A file that has not changed gives the same table again, so that
// options which came from one text are equal.
func readRules(text string) (*methods.Rules, error) {
	name, source := "", []byte(strings.TrimPrefix(text, "\n"))
	if !strings.Contains(text, "\n") {
		var err error
		if source, err = readRulesFile(text); err != nil {
			return nil, err
		}
		name = text
	}
	key := rulesKey{name, string(source)}
	rulesRead.mu.Lock()
	defer rulesRead.mu.Unlock()
	if rules, known := rulesRead.all.Get(key); known {
		return rules, nil
	}
	rules, err := methods.ParseRules(source)
	if err != nil {
		return nil, err
	}
	rules = rules.Named(name)
	*rulesRead.all.Place(key) = rules
	return rules, nil
}

// rulesRead has the tables that were read.
var rulesRead = struct {
	mu  sync.Mutex // guards all
	all recent.Map[rulesKey, *methods.Rules]
}{all: recent.Map[rulesKey, *methods.Rules]{Most: maxRulesRead}}

// maxRulesRead bounds the tables that are kept. A process reads one or two.
const maxRulesRead = 64

// rulesKey tells tables apart.
type rulesKey struct{ name, text string }

const wantTable = "want the name of a file with a table of rules, as gcltune writes it"

// readRulesFile reads a file that may hold a table.
func readRulesFile(name string) ([]byte, error) {
	if name == "" {
		return nil, errors.New(wantTable)
	}
	f, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !f.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file, want one with a table of rules", name)
	case f.Size() > methods.MaxRulesBytes:
		return nil, fmt.Errorf("%s has %d bytes, want a table of rules of at most %d", name, f.Size(),
			methods.MaxRulesBytes)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, methods.MaxRulesBytes+1)) // a longer one is refused by ParseRules
}

// comparedTuning is what the processes of a job compare of their tables: the rules, wherever they come from.
func comparedTuning(o *Options) string {
	return fmt.Sprintf("rules with the digest %x", o.Tuning.Fingerprint())
}
