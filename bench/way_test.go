package bench

import (
	"errors"
	"fmt"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// form is which of the functions of a collective is called: ...To or ...InPlace.
type form uint8

const (
	toForm form = iota
	inPlaceForm
)

var formNames = [...]string{"To", "InPlace"}

func (f form) String() string { return formNames[f] }

// parseForm is the inverse of String.
func parseForm(text string) (form, error) {
	for i, name := range formNames {
		if text == name {
			return form(i), nil
		}
	}
	return 0, fmt.Errorf("form %q, want To or InPlace", text)
}

func allForms() []form { return []form{toForm, inPlaceForm} }

// way is one way to carry out a collective: what the benchmarks compare.
type way struct {
	transport connection
	options   gcl.Options
	form      form
}

// hasInPlaceForm reports whether a collective has a function ...InPlace: its two buffers are as long.
func hasInPlaceForm(c schedule.Collective) bool {
	contract := c.Contract()
	return contract.Input != schedule.Own && contract.Output != schedule.Own
}

// ways lists the ways that a collective has. Every method goes by messages (Syncless) and stepping together (Syncful);
// Auto as the implementation stands beside them only for the method auto, which is what a program gets that asks for
// nothing.
//
// Over sockets, where a call takes long, only that way is compared, or with every all methods by messages too.
func ways(c schedule.Collective, forms []form, every bool) []way {
	var out []way
	for _, f := range forms {
		if f == inPlaceForm && !hasInPlaceForm(c) {
			continue
		}
		for _, t := range existing() {
			for _, m := range append(methods.All(), methods.Auto) {
				for _, i := range []gcl.Implementation{gcl.Syncless, gcl.Syncful, gcl.AutoImplementation} {
					if i == gcl.AutoImplementation && m != methods.Auto {
						continue
					}
					if t.sockets && i != gcl.AutoImplementation && (i == gcl.Syncful || !every) {
						continue
					}
					out = append(out, way{t, gcl.Options{Method: m, Implementation: i}, f})
				}
			}
		}
	}
	return out
}

// skips says why a method of the gallery, or one that is registered in a file beside this one, does not do a
// collective, if it does not: auto would take its place.
func (w way) skips(c schedule.Collective, n int) error {
	m := w.options.Method
	if !m.Own() || n == 1 {
		return nil
	}
	ring := make([]int, n)
	for i := range ring {
		ring[i] = i
	}
	_, err := methods.Build(methods.Spec{Method: m, Collective: c, Size: n, Ring: ring, Second: ring})
	if errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// name is the name of a benchmark below that of its collective: keys and values as benchstat takes them.
func (w way) name(n int, size byteSize) string {
	return fmt.Sprintf("transport=%s/method=%v/impl=%v/form=%v/n=%d/dtype=float32/size=%v",
		w.transport.name, w.options.Method, w.options.Implementation, w.form, n, size)
}
