package route

import "gogcl.dev/internal/enum"

// Path is how the data of a call goes.
type Path uint8

// The paths. Memory, Rounds and Small need peer memory, and Small boards beside it. Engine needs a transport.Native.
const (
	Unknown  Path = iota // not decided yet
	Local                // nothing is sent
	Messages             // rounds of messages
	Memory               // one pass over the peers' memory
	Rounds               // rounds of a schedule on the peers' memory
	Small                // what each member publishes on boards
	Engine               // a collective of the transport's own engine
)

var pathNames = enum.New[Path]("path", []string{
	Unknown: "unknown", Local: "local", Messages: "messages",
	Memory: "peer memory", Rounds: "peer memory in rounds", Small: "small", Engine: "engine",
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
