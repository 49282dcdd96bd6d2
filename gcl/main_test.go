package gcl_test

import (
	"testing"

	"gogcl.dev/internal/leaktest"
)

// TestMain fails when the tests leave a goroutine behind.
func TestMain(m *testing.M) { leaktest.Main(m) }
