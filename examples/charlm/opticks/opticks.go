// Package opticks is a book, for examples that learn from text. ATTRIBUTION.md says where it is from.
package opticks

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
)

//go:embed opticks.txt.gz
var packed []byte

// Text unpacks the book: 567,198 bytes of UTF-8, the caller's.
func Text() ([]byte, error) {
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("opticks.txt.gz: %w", err)
	}
	all, err := io.ReadAll(plain)
	if err != nil {
		return nil, fmt.Errorf("opticks.txt.gz: %w", err)
	}
	return all, nil
}
