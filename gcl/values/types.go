package values

import (
	"encoding"
	"encoding/gob"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// fieldsOf tells types of one name apart: by their packages and by the fields that travel. within are the types around.
func fieldsOf(t reflect.Type, within []reflect.Type) string {
	text := t.PkgPath() + "." + t.String()
	if slices.Contains(within, t) {
		return text
	}
	within = append(slices.Clip(within), t)
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return text + fieldsOf(t.Elem(), within)
	case reflect.Map:
		return text + fieldsOf(t.Key(), within) + fieldsOf(t.Elem(), within)
	case reflect.Struct:
		var b strings.Builder
		for f := range t.Fields() {
			if f.IsExported() {
				fmt.Fprintf(&b, "%s %s;", f.Name, fieldsOf(f.Type, within))
			}
		}
		return text + "{" + b.String() + "}"
	}
	return text
}

// ownCoding are the interfaces of types that encode themselves, into which gob does not look.
var ownCoding = []reflect.Type{reflect.TypeFor[gob.GobEncoder](), reflect.TypeFor[encoding.BinaryMarshaler]()}

func codesItself(t reflect.Type) bool {
	return slices.ContainsFunc(ownCoding, func(own reflect.Type) bool {
		return t.Implements(own) || reflect.PointerTo(t).Implements(own)
	})
}

// mayCycle reports whether values of a type can lead back to themselves: through an interface, or a type within itself.
func mayCycle(t reflect.Type, within []reflect.Type) bool {
	if slices.Contains(within, t) {
		return true
	}
	if codesItself(t) {
		return false
	}
	within = append(slices.Clip(within), t)
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return mayCycle(t.Elem(), within)
	case reflect.Map:
		return mayCycle(t.Key(), within) || mayCycle(t.Elem(), within)
	case reflect.Struct:
		for f := range t.Fields() {
			if f.IsExported() && mayCycle(f.Type, within) {
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

// findCycle returns an error for a value that leads back to itself, which gob would follow until the stack is full. path
// has the places on the way to it.
func findCycle(v reflect.Value, path map[visit]bool) error {
	if !v.IsValid() || codesItself(v.Type()) {
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if v.IsNil() || !mayCycle(v.Type(), nil) {
			return nil
		}
		here := visit{at: v.Pointer(), of: v.Type()}
		if v.Kind() == reflect.Slice {
			here.len = v.Len()
		}
		if path[here] {
			return errCycle
		}
		path[here] = true
		defer delete(path, here)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return findCycle(v.Elem(), path)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := findCycle(v.Index(i), path); err != nil {
				return err
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if err := errors.Join(findCycle(key, path), findCycle(v.MapIndex(key), path)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				if err := findCycle(v.Field(i), path); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
