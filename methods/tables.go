package methods

import (
	"embed"
	"fmt"
	"sync"
)

//go:embed tables/*.txt tables/links/*.txt
var tables embed.FS

// tableNames are the transports that have a table.
var tableNames = []string{"inproc", "tcp", "unix"}

// DefaultRules is the table of the rules by which auto chooses over a transport between replicas of one host, by the
// name in transport.Link: "inproc", "tcp" or "unix". gcltune has measured it; its comments say where and when.
// nil: there is none.
func DefaultRules(transport string) *Rules {
	return defaults()[transport]
}

// linkNames are the classes of links that have a table.
var linkNames = []string{"ipu", "memory", "engine", "sockets", "network"}

// linkTable is the table of a class of links.
func linkTable(name string) *Rules { return links()[name] }

// defaults has the tables by the names of transports, links those by the names of classes. A test reads them all.
var (
	defaults = sync.OnceValue(func() map[string]*Rules { return readTables("tables/", tableNames) })
	links    = sync.OnceValue(func() map[string]*Rules { return readTables("tables/links/", linkNames) })
)

// readTables reads tables that are part of the program.
func readTables(dir string, names []string) map[string]*Rules {
	out := map[string]*Rules{}
	for _, name := range names {
		file := dir + name + ".txt"
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
}
