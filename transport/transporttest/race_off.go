//go:build !race

package transporttest

// underRace says that the race detector is on.
const underRace = false

// large is a size that no cache of a transport swallows.
const large = 3<<20 + 17
