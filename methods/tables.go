package methods

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"unicode"
)

// tables has the tables of links, those of machines, each in a folder of its name, and in the folder all what holds on
// several machines. gcltune makes those of machines of the samples beside them.
//
//go:embed tables/*/*.txt
var tables embed.FS

// DefaultRules is [RulesOn] of a machine that nothing is known of.
func DefaultRules(transport string) *Rules { return RulesOn("", transport) }

// RulesOn is the table of the rules by which auto chooses over a transport between replicas of one host. machine and
// transport are as in transport.Link. It is that of the machine if there is one, or else that of what holds on several
// machines. gcltune has measured it; its comments say where and when. nil: there is none.
func RulesOn(machine, transport string) *Rules {
	if r := builtIn()[folder(machine)+"/"+transport]; machine != "" && r != nil {
		return r
	}
	return builtIn()["all/"+transport]
}

// folder is the folder in methods/tables of a machine by its name: its small letters and digits, and hyphens for
// all else.
func folder(machine string) string {
	words := strings.FieldsFunc(strings.ToLower(machine), func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return strings.Join(words, "-")
}

// linkTable is the table of a class of links.
func linkTable(name string) *Rules { return builtIn()["links/"+name] }

// builtIn has the tables by folder and name, as in "links/ipu". A test reads them all.
var builtIn = sync.OnceValue(func() map[string]*Rules {
	out := map[string]*Rules{}
	files, err := fs.Glob(tables, "tables/*/*.txt")
	for _, file := range files {
		var text []byte
		if text, err = tables.ReadFile(file); err != nil {
			break
		}
		var r *Rules
		if r, err = ParseRules(text); err != nil {
			err = fmt.Errorf("%s: %w", file, err)
			break
		}
		r.title = "gogcl.dev/methods/" + file // no file of the user's
		out[strings.TrimSuffix(strings.TrimPrefix(file, "tables/"), ".txt")] = r
	}
	if err != nil {
		panic(fmt.Sprintf("methods: what is part of the program: %v", err))
	}
	return out
})
