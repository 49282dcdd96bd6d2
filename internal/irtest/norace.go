//go:build !race

package irtest

const Race = false
