package metrics

import "testing"

// TestBuckets: a time is in the first bucket whose bound is no less, however long.
func TestBuckets(t *testing.T) {
	for i, b := range bounds {
		if at, after := bucketOf(b), bucketOf(b+1); at != i || after != i+1 {
			t.Errorf("%d ns is in bucket %d, and a nanosecond more in %d; want %d and %d", b, at, after, i, i+1)
		}
	}
	if first, last := bucketOf(1), bucketOf(1<<62); first != 0 || last != len(bounds) {
		t.Errorf("buckets %d and %d, want 0 and %d", first, last, len(bounds))
	}
}
