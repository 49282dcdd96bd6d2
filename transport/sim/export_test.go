package sim

import (
	"testing"
	"time"
)

// Hurry has replicas count as away soon, for the rest of a test.
func Hurry(t testing.TB) {
	before := awayAfter
	awayAfter = 2 * time.Millisecond
	t.Cleanup(func() { awayAfter = before })
}
