//go:build race

package transporttest

// underRace says that the race detector is on: everything takes ten times as long, and allocates.
const underRace = true

// large is a size that no cache of a transport swallows.
const large = 512<<10 + 17
