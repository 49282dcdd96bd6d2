package fulldisk

import "testing"

func TestWriter(t *testing.T) {
	w := &Writer{Room: 2}
	for i, want := range []error{nil, nil, Err, Err} {
		n, err := w.Write([]byte("abc"))
		if err != want || n != 3 && err == nil || n != 0 && err != nil {
			t.Errorf("write %d: %d bytes, error %v, want error %v", i, n, err, want)
		}
	}
}
