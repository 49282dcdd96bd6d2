package perfetto

import (
	"testing"
	"unsafe"
)

// TestSizes: what is kept of an event is no more than Timeline.Limit says, with the growth of a slice by doubling.
func TestSizes(t *testing.T) {
	if n := 2 * unsafe.Sizeof(event{}); n > 160 {
		t.Errorf("an event takes %d bytes", n)
	}
	if n := unsafe.Sizeof(call{}); n > 400 {
		t.Errorf("a call takes %d bytes", n)
	}
	if n := len(short(string(make([]byte, 5000)))); n > 2*maxErrorBytes {
		t.Errorf("an error takes %d bytes", n)
	}
}
