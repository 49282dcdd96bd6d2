package recent

import "testing"

func TestMap(t *testing.T) {
	m := Map[int, []int]{Most: 3}
	if v, ok := m.Get(1); ok || v != nil {
		t.Errorf("an empty Map has %v", v)
	}
	for key := range 3 {
		at := m.Place(key)
		if *at != nil {
			t.Errorf("the place of key %d, for which nothing had to go, has %v", key, *at)
		}
		*at = []int{key}
	}
	for key := 3; key < 10; key++ {
		m.Get(key - 3) // which is not what keeps it
		at := m.Place(key)
		if len(*at) != 1 || (*at)[0] != key-3 {
			t.Errorf("the place of key %d has %v, want the value of key %d", key, *at, key-3)
		}
		*at = []int{key}
		for old := range key + 2 {
			v, ok := m.Get(old)
			if want := old > key-3 && old <= key; ok != want || ok && v[0] != old {
				t.Errorf("after key %d, key %d: %v, %v", key, old, v, ok)
			}
		}
	}
	if m.Len() != 3 || len(m.places) != 3 {
		t.Errorf("%d values and %d keys are kept, want 3", m.Len(), len(m.places))
	}
}
