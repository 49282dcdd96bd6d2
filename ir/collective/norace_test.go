//go:build !race

package collective_test

// underRace says that the race detector is at work, with which append allocates where it otherwise does not.
const underRace = false
