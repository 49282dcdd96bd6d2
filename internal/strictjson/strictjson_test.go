package strictjson

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// thing is what the documents of these tests hold.
type thing struct {
	name   string
	counts []int64
	raw    string
}

func parse(data []byte) (t thing, err error) {
	err = Read(data, func(r *Reader) error {
		return r.Members(map[string]func() error{
			"name": func() (err error) { t.name, err = r.Text(); return err },
			"counts": func() error {
				return r.Array(func() error {
					n, err := r.Count()
					t.counts = append(t.counts, n)
					return err
				})
			},
			"raw": func() error {
				raw, err := r.Raw()
				t.raw = string(raw)
				return err
			},
		})
	})
	return t, err
}

func TestRead(t *testing.T) {
	got, err := parse([]byte(` { "raw" : {"a":[ 1 ], "a":2} , "counts":[0, 9223372036854775807],"name":"\u00e4\"ä"} ` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got.name != `ä"ä` || !slices.Equal(got.counts, []int64{0, 1<<63 - 1}) || got.raw != `{"a":[ 1 ], "a":2}` {
		t.Errorf("%+v", got)
	}
}

// TestRefused reads what is no JSON, and what is no thing.
func TestRefused(t *testing.T) {
	tests := []struct{ data, want string }{
		{``, "after byte 0: want an object: EOF"},
		{`[]`, "before byte 1: want an object, found ["},
		{`null`, "before byte 4: want an object, found null"},
		{`{`, "want the end of an object: "},
		{`{}`, `before byte 2: the object has no ["counts" "name" "raw"]`},
		{`{"name":"a","raw":0}`, `the object has no ["counts"]`},
		{`{"name":"a","counts":[],"raw":1,"more":2}`, `before byte 38: the name "more" is none of this object's`},
		{`{"Name":"a"}`, `the name "Name" is none of this object's`},
		{`{"name":"a","name":"b"}`, `before byte 18: the name "name" for the second time in one object`},
		{`{"name":"a","n\u0061me":"b"}`, `the name "name" for the second time in one object`},
		{`{"name":1}`, "before byte 9: want a string, found the number 1"},
		{`{"name":true}`, "want a string, found true"},
		{`{"name":["a"]}`, "want a string, found ["},
		{`{"name":`, "after byte 8: want a string: "},
		{`{"name" "a"}`, "want a string: invalid character"},
		{`{name:"a"}`, "want a name: invalid character"},
		{`{1:"a"}`, "want a name: "},
		{`{"name":"a",}`, "want a name: invalid character"},
		{`{"counts":{}}`, "want an array, found {"},
		{`{"counts":[`, "want the end of an array: "},
		{`{"counts":[1,]}`, "want a whole number: invalid character"},
		{`{"counts":[1}`, "want the end of an array: invalid character"},
		{`{"counts":["1"]}`, `want a whole number, found the string "1"`},
		{`{"counts":[-1]}`, "want a whole number, found the number -1"},
		{`{"counts":[-0]}`, "want a whole number, found the number -0"},
		{`{"counts":[1.0]}`, "want a whole number, found the number 1.0"},
		{`{"counts":[1e3]}`, "want a whole number, found the number 1e3"},
		{`{"counts":[01]}`, "want "},
		{`{"counts":[9223372036854775808]}`, "want a number that 63 bits hold, found the number 9223372036854775808"},
		{`{"raw":`, "after byte 7: want a value: "},
		{`{"raw":[}`, "want a value: invalid character"},
		{`{"name":"a","counts":[],"raw":1} x`, "at byte 33: want the end, found 'x'"},
		{`{"name":"a","counts":[],"raw":1}{}`, "at byte 32: want the end, found '{'"},
		{"{\"name\":\"\xff\"}", "it is not valid UTF-8"},
		{`{"name":"` + strings.Repeat("a", 1000) + `","counts":1000}`, "want an array, found the number 1000"},
	}
	for _, tt := range tests {
		if _, err := parse([]byte(tt.data)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.100s: error %v, want %q", tt.data, err, tt.want)
		}
	}
}

// FuzzRead takes what encoding/json takes of a thing, and less.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"name":"a","counts":[1,2],"raw":{}}`))
	f.Add([]byte(`{"name":"\ud800","counts":[],"raw":[[]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := parse(data)
		if err != nil {
			return
		}
		var want struct {
			Name   string
			Counts []int64
			Raw    json.RawMessage
		}
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got.name, got.counts, got.raw) != fmt.Sprint(want.Name, want.Counts, string(want.Raw)) {
			t.Fatalf("%+v, want %+v", got, want)
		}
	})
}
