package route

import "gogcl.dev/internal/enum"

// Path is how the data of a call goes.
type Path uint8

// The paths. All but Local and Messages need peer memory, and Small boards beside it.
const (
	Unknown  Path = iota // not decided yet
	Local                // nothing is sent
	Messages             // rounds of messages
	Memory               // one pass over the peers' memory
	Rounds               // rounds of a schedule on the peers' memory
	Small                // what each member publishes on boards
)

var pathNames = enum.New[Path]("path", []string{
	Unknown: "unknown", Local: "local", Messages: "messages",
	Memory: "peer memory", Rounds: "peer memory in rounds", Small: "small",
}...)

// String returns words for the path, as in "peer memory".
func (p Path) String() string { return pathNames.String(p) }

// Implementation is how the steps of a method are carried out.
type Implementation uint8

// The implementations: see gcl.Implementation.
const (
	Auto Implementation = iota
	Syncless
	Syncful
	Hybrid
)
