package methods

import (
	"embed"
	"fmt"
	"sync"
)

//go:embed tables/*.txt
var tables embed.FS

// tableNames are the transports that have a table.
var tableNames = []string{"inproc", "tcp", "unix"}

// DefaultRules is the table of the rules by which auto chooses over a transport between replicas of one host, by the
// name in transport.Link: "inproc", "tcp" or "unix". gcltune has measured it; its comments say where and when.
// nil: there is none.
func DefaultRules(transport string) *Rules {
	return defaults()[transport]
}

// defaults has the tables, by the names of transports. A test reads them all.
var defaults = sync.OnceValue(func() map[string]*Rules {
	out := map[string]*Rules{}
	for _, name := range tableNames {
		file := "tables/" + name + ".txt"
		text, err := tables.ReadFile(file)
		if err == nil {
			var r *Rules
			if r, err = ParseRules(text); err == nil {
				r.title = "gogcl.dev/methods/" + file // no file of the user's
				out[name] = r
			}
		}
		if err != nil {
			panic(fmt.Sprintf("methods: %s, which is part of the program: %v", file, err))
		}
	}
	return out
})
