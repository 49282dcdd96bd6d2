//go:build race

package bench

// raceEnabled says that everything takes ten times as long, so that large cases are left out.
const raceEnabled = true
