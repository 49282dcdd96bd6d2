package values

import (
	"encoding"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
)

// writeFields writes what tells types of one name apart: their packages and the fields that travel. seen has the types
// that have been written.
func writeFields(w io.Writer, t reflect.Type, seen map[reflect.Type]bool) {
	_, _ = fmt.Fprintf(w, "%s.%v", t.PkgPath(), t)
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		writeFields(w, t.Elem(), seen)
	case reflect.Map:
		writeFields(w, t.Key(), seen)
		writeFields(w, t.Elem(), seen)
	case reflect.Struct:
		for f := range t.Fields() {
			if f.IsExported() {
				_, _ = fmt.Fprintf(w, "{%s ", f.Name)
				writeFields(w, f.Type, seen)
			}
		}
		_, _ = io.WriteString(w, "}")
	}
}

// ownCoding are the interfaces of types that encode themselves, into which gob does not look.
var ownCoding = []reflect.Type{reflect.TypeFor[gob.GobEncoder](), reflect.TypeFor[encoding.BinaryMarshaler]()}

func codesItself(t reflect.Type) bool {
	return slices.ContainsFunc(ownCoding, func(own reflect.Type) bool {
		return t.Implements(own) || reflect.PointerTo(t).Implements(own)
	})
}

// cycles looks for values that lead back to themselves.
type cycles struct {
	may  map[reflect.Type]bool // values of a type can, by what the type is; true too while it is looked at
	path map[visit]bool        // the places on the way to the value
}

func newCycles() *cycles { return &cycles{map[reflect.Type]bool{}, map[visit]bool{}} }

// possible reports whether values of a type can lead back to themselves: through an interface, or a type within itself.
func (c *cycles) possible(t reflect.Type) bool {
	may, known := c.may[t]
	if !known {
		c.may[t] = true
		may = c.through(t)
		c.may[t] = may
	}
	return may
}

// through is possible of a type that is not known.
func (c *cycles) through(t reflect.Type) bool {
	if codesItself(t) {
		return false
	}
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return c.possible(t.Elem())
	case reflect.Map:
		return c.possible(t.Key()) || c.possible(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if f.IsExported() && c.possible(f.Type) {
				return true
			}
		}
	}
	return false
}

// visit is a place that a value leads to.
type visit struct {
	at  uintptr
	len int
	of  reflect.Type
}

var errCycle = errors.New("the value leads back to itself, which has no end as bytes")

// find returns an error for a value that leads back to itself, which gob would follow until the stack is full.
func (c *cycles) find(v reflect.Value) error {
	if !v.IsValid() || !c.possible(v.Type()) {
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if v.IsNil() {
			return nil
		}
		here := visit{at: v.Pointer(), of: v.Type()}
		if v.Kind() == reflect.Slice {
			here.len = v.Len()
		}
		if c.path[here] {
			return errCycle
		}
		c.path[here] = true
		defer delete(c.path, here)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return c.find(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := c.find(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if err := errors.Join(c.find(key), c.find(v.MapIndex(key))); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				if err := c.find(v.Field(i)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
