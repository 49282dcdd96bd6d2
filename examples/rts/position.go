package main

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// position is how far training has come, beside parameters and states, and the flags that the losses depend on: all
// that follows depends on these and on the number of replicas.
type position struct {
	Seed  uint64 `json:"seed"`
	Batch int    `json:"batch"`
	Rate  number `json:"lr"`
	Clip  number `json:"clip"`

	Passes []pass `json:"passes"` // that are finished
	Step   int    `json:"step"`   // steps made of the pass after those
	Loss   number `json:"loss"`   // what they add to the loss of that pass
}

// pass is what one pass over the training images came to.
type pass struct {
	Loss     number `json:"loss"`     // mean cross entropy of the training images, each before its step
	Accuracy number `json:"accuracy"` // part of the images held out that the net knew afterwards
}

// String has no more than eight characters of each number.
func (p pass) String() string {
	loss := fmt.Sprintf("%.4f", p.Loss)
	if len(loss) > 8 {
		loss = fmt.Sprintf("%.2e", p.Loss)
	}
	return fmt.Sprintf("loss %s  accuracy %.4f", loss, p.Accuracy)
}

// number is a float64 whose text keeps every bit, also of what JSON has no numbers for.
type number float64

// MarshalText implements encoding.TextMarshaler.
func (n number) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(n), 'g', -1, 64), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *number) UnmarshalText(text []byte) error {
	v, err := strconv.ParseFloat(string(text), 64)
	*n = number(v)
	return err
}

// What the meta map of a checkpoint has.
const (
	programKey  = "program"
	programName = "gogcl.dev/examples/rts"
	positionKey = "position"
)

// start is the position of a training that begins.
func (cfg config) start() position {
	return position{Seed: cfg.seed, Batch: cfg.batch, Rate: number(cfg.rate), Clip: number(cfg.clip), Passes: []pass{}}
}

// meta is the position as a checkpoint keeps it.
func (at position) meta() (map[string]string, error) {
	text, err := json.Marshal(at)
	if err != nil {
		return nil, err
	}
	return map[string]string{programKey: programName, positionKey: string(text)}, nil
}

// parseMeta reads what meta has made, and nothing else. The errors say what is wrong with the checkpoint.
func parseMeta(meta map[string]string, images int) (position, error) {
	if name := meta[programKey]; name != programName {
		return position{}, fmt.Errorf("it is of the program %q, want %q", name, programName)
	}
	var at position
	err := json.Unmarshal([]byte(meta[positionKey]), &at)
	if err == nil {
		err = at.check(images)
	}
	if err == nil {
		var again map[string]string
		if again, err = at.meta(); err == nil && again[positionKey] != meta[positionKey] {
			err = fmt.Errorf("want %q if that is what it means", again[positionKey])
		}
	}
	if err != nil {
		return position{}, fmt.Errorf("its position %q: %w", meta[positionKey], err)
	}
	return at, nil
}

// check says what cannot be, of so many training images.
func (at position) check(images int) error {
	if at.Batch < 1 || at.Batch > images {
		return fmt.Errorf("a batch of %d, want 1 to %d", at.Batch, images)
	}
	if steps := (images + at.Batch - 1) / at.Batch; at.Step < 0 || at.Step >= steps {
		return fmt.Errorf("step %d, want 0 to %d", at.Step, steps-1)
	}
	return nil
}

// fits says which flag has to be another for training to go on from here.
func (at position) fits(cfg config) error {
	passes := len(at.Passes)
	if at.Step > 0 {
		passes++
	}
	if passes > cfg.epochs {
		return fmt.Errorf("-epochs %d: the checkpoint in %s has come to pass %d", cfg.epochs, cfg.checkpoint, passes)
	}
	for _, flag := range []struct {
		name      string
		is, saved any
	}{
		{"seed", cfg.seed, at.Seed}, {"batch", cfg.batch, at.Batch}, {"lr", cfg.rate, float64(at.Rate)}, {"clip", cfg.clip, float64(at.Clip)},
	} {
		if flag.is != flag.saved {
			return fmt.Errorf("-%s %v: the checkpoint in %s is of -%[1]s %[4]v",
				flag.name, flag.is, cfg.checkpoint, flag.saved)
		}
	}
	return nil
}

// String says how far it is, for people.
func (at position) String() string {
	return fmt.Sprintf("%d %s and %d %s", len(at.Passes), plural(len(at.Passes), "pass", "passes"), at.Step,
		plural(at.Step, "step", "steps"))
}

func plural(n int, one, several string) string {
	if n == 1 {
		return one
	}
	return several
}
