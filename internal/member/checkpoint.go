package member

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"gogcl.dev/ir/collective"
	"gogcl.dev/rts/checkpoint"
)

// Mistake is an error of the command line that is found only when what it names is looked at.
type Mistake struct{ Err error }

func (m Mistake) Error() string { return m.Err.Error() }
func (m Mistake) Unwrap() error { return m.Err }

// OpenCheckpoint opens the directory of a flag -checkpoint and returns the meta map of the checkpoint in it: with a
// flag -resume there must be one, and without there must be none that would be lost; then the map is nil. Nobody else
// may save to the directory until it is closed. Without a directory all results are nil.
func (m *Member) OpenCheckpoint(ctx context.Context, dir string, resume bool) (_ *checkpoint.Directory,
	meta map[string]string, err error) {
	if dir == "" {
		return nil, nil, nil
	}
	none := Mistake{fmt.Errorf("-resume: there is no checkpoint in %s", dir)}
	if _, err := os.Stat(dir); resume && errors.Is(err, fs.ErrNotExist) {
		return nil, nil, none // and Open would make the directory
	}
	var d *checkpoint.Directory
	if m.InJob() {
		d, err = checkpoint.OpenTogether(ctx, dir, collective.Job(m.comm))
	} else {
		d, err = checkpoint.Open(dir)
	}
	if err != nil {
		return nil, nil, Mistake{err}
	}
	meta, err = d.Meta(ctx)
	switch {
	case errors.Is(err, checkpoint.ErrNone) && resume:
		err = none
	case errors.Is(err, checkpoint.ErrNone):
		return d, nil, nil
	case err == nil && !resume:
		err = Mistake{fmt.Errorf("-checkpoint %s: it has a checkpoint already: -resume goes on from it", dir)}
	}
	if err != nil {
		return nil, nil, errors.Join(err, d.Close())
	}
	return d, meta, nil
}
