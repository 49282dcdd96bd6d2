package meeting

import (
	"reflect"
	"testing"
	"unsafe"
)

var table *Table // so that it is not on the stack

// TestLayout: a notice fills a cache line and starts at one, and so do seats and what all members write. Nothing of it
// has a pointer, so that it may lie where no garbage collector looks.
func TestLayout(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("laid out for 64 bits")
	}
	for name, at := range map[string]uintptr{
		"a notice": unsafe.Sizeof(notice{}) - 64, "a seat": unsafe.Sizeof(Seat{}), "a hall": unsafe.Sizeof(Hall{}),
		"the queue": unsafe.Offsetof(Seat{}.queue), "the boards": unsafe.Offsetof(Seat{}.boards),
		"count": unsafe.Offsetof(Hall{}.count), "done": unsafe.Offsetof(Hall{}.done), "next": unsafe.Offsetof(Hall{}.next),
		"left": unsafe.Offsetof(Hall{}.left), "results": unsafe.Offsetof(Hall{}.combined), "a spool": unsafe.Sizeof(spool{}),
	} {
		if at%64 != 0 {
			t.Errorf("%s: %d bytes past a line", name, at%64)
		}
	}
	for range 100 {
		table = NewTable([]int{3, 5}, true)
		for i, s := range table.seats {
			if at := uintptr(unsafe.Pointer(s)); at%64 != 0 {
				t.Fatalf("seat %d at %#x", i, at)
			}
		}
		if at := uintptr(unsafe.Pointer(table.hall)); at%64 != 0 {
			t.Fatalf("the hall at %#x", at)
		}
	}
	for _, x := range []any{Seat{}, Hall{}} {
		if where := pointers(reflect.TypeOf(x)); where != "" {
			t.Errorf("%T has a pointer: %s", x, where)
		}
	}
}

// pointers names a part of a type that is no plain bytes, or is "".
func pointers(of reflect.Type) string {
	switch k := of.Kind(); {
	case k == reflect.Struct:
		for f := range of.Fields() {
			if where := pointers(f.Type); where != "" {
				return f.Name + "." + where
			}
		}
		return ""
	case k == reflect.Array:
		return pointers(of.Elem())
	case k <= reflect.Complex128 && k != reflect.Uintptr && k != reflect.Invalid:
		return ""
	}
	return of.String()
}
