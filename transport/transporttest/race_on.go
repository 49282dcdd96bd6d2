//go:build race

package transporttest

// underRace says that the race detector is on: everything takes ten times as long, and allocates.
const underRace = true
