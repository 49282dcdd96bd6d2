//go:build !race

package transporttest

// underRace says that the race detector is on.
const underRace = false
