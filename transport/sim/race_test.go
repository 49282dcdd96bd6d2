//go:build race

package sim_test

// underRace reports whether the race detector is on.
const underRace = true
