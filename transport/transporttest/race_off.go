//go:build !race

package transporttest

// underRace says that the race detector is on.
const underRace = false

// large is a size that no cache of a transport swallows. A suite that is Brief has an eighth of it.
const large = 3<<20 + 17
