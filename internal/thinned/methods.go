// Package thinned has the methods for tests that try all of them with all of something else: docs/design/testing.md has
// the rule.
package thinned

import (
	"slices"

	"gogcl.dev/methods"
)

// Constants lists the methods that are constants and make schedules. Each does every collective.
func Constants() []methods.Method { return slices.DeleteFunc(methods.All(), methods.Method.Own) }

// Methods is Constants, and behind them one of the gallery: number turn of it, counted round. A test whose turn is the
// size of a group tries another one for each size.
func Methods(turn int) []methods.Method {
	of := slices.DeleteFunc(methods.All(), func(m methods.Method) bool { return !m.InGallery() })
	return append(Constants(), of[turn%len(of)])
}
