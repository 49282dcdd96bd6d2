package chunks_test

import (
	"testing"

	"gogcl.dev/chunks"
	"gogcl.dev/internal/anyinput"
)

// TestAnyInput: no call panics.
func TestAnyInput(t *testing.T) {
	t.Parallel()
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{
			"Concat": chunks.Concat[int], "PerRank": chunks.PerRank, "Split": chunks.Split,
			"SplitPadded": chunks.SplitPadded, "NewChunks": chunks.NewChunks[int],
		},
		Types:  []any{chunks.Chunk[int]{}, chunks.Chunks[int]{}, chunks.Mapping{}},
		Values: []any{chunks.Mapping{3, 4}},
		Skip:   map[string]string{"NewChunks": "it makes as many as it is told, as make does"},
	})
}
