package strictjson

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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
	err = Read(context.Background(), data, func(r *Reader) error {
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
	t.Parallel()
	got, err := parse([]byte(` { "raw" : {"a":[ 1 ], "a":2} , "counts":[0, 9223372036854775807],"name":"\u00e4\"ä"} ` +
		"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got.name != `ä"ä` || !slices.Equal(got.counts, []int64{0, 1<<63 - 1}) || got.raw != `{"a":[ 1 ], "a":2}` {
		t.Errorf("%+v", got)
	}
}

// TestRefused reads what is no JSON, and what is no thing.
func TestRefused(t *testing.T) {
	t.Parallel()
	tests := []struct{ data, want string }{
		{``, "after byte 0: want an object: unexpected EOF"},
		{`[]`, "before byte 1: want an object, found ["},
		{`null`, "before byte 4: want an object, found null"},
		{`{`, "after byte 1: want a name: unexpected EOF"},
		{`{}`, `before byte 2: the object has no ["counts" "name" "raw"]`},
		{`{"name":"a","raw":0}`, `the object has no ["counts"]`},
		{`{"name":"a","counts":[],"raw":1,"more":2}`, `before byte 39: the name "more" is none of this object's`},
		{`{"Name":"a"}`, `the name "Name" is none of this object's`},
		{`{"name":"a","name":"b"}`, `before byte 18: the name "name" for the second time in one object`},
		{`{"name":"a","n\u0061me":"b"}`, `the name "name" for the second time in one object`},
		{`{"name":1}`, "before byte 9: want a string, found the number 1"},
		{`{"name":true}`, "want a string, found true"},
		{`{"name":["a"]}`, "want a string, found ["},
		{`{"name":`, "after byte 8: want a string: "},
		{`{"name" "a"}`, `want a colon, found the string "a"`},
		{`{name:"a"}`, `at byte 1: want a name: "name" is none of true, false and null`},
		{`{1:"a"}`, "want a name, found the number 1"},
		{`{"name":"a",}`, "want a name, found }"},
		{`{,}`, "before byte 2: want a name, found ,"},
		{`{"name":"a";}`, `at byte 11: want a comma or the end of an object: ';' begins no value`},
		{`{"name":"a" "raw":1}`, `want a comma or the end of an object, found the string "raw"`},
		{`{"counts":{}}`, "want an array, found {"},
		{`{"counts":[`, "after byte 11: want a whole number: unexpected EOF"},
		{`{"counts":[1,]}`, "want a whole number, found ]"},
		{`{"counts":[,]}`, "want a whole number, found ,"},
		{`{"counts":[1 2]}`, "want a comma or the end of an array, found the number 2"},
		{`{"counts":[1}`, "want a comma or the end of an array, found }"},
		{`{"counts":["1"]}`, `want a whole number, found the string "1"`},
		{`{"counts":[-1]}`, "want a whole number, found the number -1"},
		{`{"counts":[-0]}`, "want a whole number, found the number -0"},
		{`{"counts":[1.0]}`, "want a whole number, found the number 1.0"},
		{`{"counts":[1e3]}`, "want a whole number, found the number 1e3"},
		{`{"counts":[01]}`, `at byte 11: want a whole number: "01" is no number`},
		{`{"counts":[9223372036854775808]}`, "want a number that 63 bits hold, found the number 9223372036854775808"},
		{`{"raw":`, "after byte 7: want a value: "},
		{`{"raw":[}`, "bytes 7 to 9 are no value"},
		{`{"raw":[[]`, "after byte 10: want a value: unexpected EOF"},
		{`{"raw":}`, "bytes 7 to 8 are no value"},
		{`{"raw":nil}`, `at byte 7: want a value: "nil" is none of true, false and null`},
		{`{"raw":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, "bytes 7 to 40007 are no value"},
		{`{"name":"a`, "at byte 8: want a string: unexpected EOF"},
		{`{"name":"a\`, "at byte 8: want a string: unexpected EOF"},
		{`{"name":"\x"}`, "before byte 12: a string: invalid character"},
		{`{"name":"\`, "unexpected EOF"},
		{"{\"name\":\"\n\"}", `the character '\n' in a string`},
		{`{"counts":` + strings.Repeat("1", 1000) + `}`, "found the number " + strings.Repeat("1", 100) + "\x00"},
		{`{"name":` + strings.Repeat("n", 1000) + `}`, `"` + strings.Repeat("n", 100) + `" is none of`},
		{`{"name":` + strings.Repeat("1.", 1000) + `}`, `"` + strings.Repeat("1.", 50) + `" is no number`},
		{`{"` + strings.Repeat("a", 1000) + `":1}`, `the name "` + strings.Repeat("a", 100) + `" is none of`},
		{`{"counts":"` + strings.Repeat("\u00e4", 1000) + `"}`, `found the string "` + strings.Repeat("ä", 100) + "\"\x00"},
		{`{"name":"a","counts":[],"raw":1} x`, "at byte 33: want the end, found 'x'"},
		{`{"name":"a","counts":[],"raw":1}{}`, "at byte 32: want the end, found '{'"},
		{"{\"name\":\"\xff\"}", "it is not valid UTF-8"},
		{`{"name":"` + strings.Repeat("a", 1000) + `","counts":1000}`, "want an array, found the number 1000"},
	}
	for _, tt := range tests {
		if _, err := parse([]byte(tt.data)); err == nil || !strings.Contains(err.Error()+"\x00", tt.want) {
			t.Errorf("%.100s: error %v, want %q", tt.data, err, tt.want)
		}
	}
}

// TestLimits reads as many names and numbers as there may be, and one more.
func TestLimits(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	ints := func(data string, most int) (got []int, err error) {
		err = Read(ctx, []byte(data), func(r *Reader) (err error) { got, err = r.Ints(most); return err })
		return got, err
	}
	object := func(data string, most int) (names []string, err error) {
		err = Read(ctx, []byte(data), func(r *Reader) error {
			return r.Object(most, func(name string) error {
				names = append(names, name)
				_, err := r.Raw()
				return err
			})
		})
		return names, err
	}
	unsigned := func(data string) (n uint64, err error) {
		err = Read(ctx, []byte(data), func(r *Reader) (err error) { n, err = r.Uint64(); return err })
		return n, err
	}
	if got, err := ints(" [ 1 , 2,0] ", 3); err != nil || !slices.Equal(got, []int{1, 2, 0}) {
		t.Errorf("%v, error %v", got, err)
	}
	if got, err := ints("[]", 0); err != nil || len(got) > 0 {
		t.Errorf("%v, error %v", got, err)
	}
	if got, err := object(`{ "a" : 1,"b":{} }`, 2); err != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%q, error %v", got, err)
	}
	if got, err := unsigned("18446744073709551615"); err != nil || got != math.MaxUint64 {
		t.Errorf("%d, error %v", got, err)
	}
	wantError := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	_, err := ints("[1,2,0]", 2)
	wantError(err, "before byte 5: an array of more than 2 numbers")
	_, err = ints("[1,-2,0]", 2)
	wantError(err, "want a whole number, found the number -2")
	_, err = ints("[4294967296]", 1)
	if math.MaxInt == math.MaxInt32 {
		wantError(err, "the number 4294967296, too many for this machine")
	} else if err != nil {
		t.Error(err)
	}
	_, err = object(`{"a":1,"b":2}`, 1)
	wantError(err, "before byte 10: an object of more than 1 names")
	_, err = unsigned("18446744073709551616")
	wantError(err, "want a number that 64 bits hold, found the number 18446744073709551616")
}

// TestContext ends ctx in the middle of a value of any kind.
func TestContext(t *testing.T) {
	t.Parallel()
	why := errors.New("Ctrl-C")
	for _, read := range []func(r *Reader) error{
		func(r *Reader) error { _, err := r.Raw(); return err },
		func(r *Reader) error { _, err := r.Ints(9); return err },
		func(r *Reader) error { return r.Array(func() error { return nil }) },
	} {
		ctx, end := context.WithCancelCause(context.Background())
		err := Read(ctx, []byte("[[1],[2]]"), func(r *Reader) error {
			return r.Array(func() error { end(why); return read(r) })
		})
		if !errors.Is(err, why) {
			t.Errorf("error %v, want %v", err, why)
		}
	}
}

// TestNumbers reads numbers, and what is none, as encoding/json has it.
func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, a := range []string{"", "-", "+", "--"} {
		for _, b := range []string{"", "0", "00", "01", "10", "9"} {
			for _, c := range []string{"", ".", ".0", ".10", ".-1", "..1", ".1.1"} {
				for _, d := range []string{"", "e", "E1", "e+1", "e-01", "e+", "e1.0", "ee1"} {
					text := a + b + c + d
					err := Read(context.Background(), []byte(text), func(r *Reader) error {
						_, err := r.Raw()
						return err
					})
					if want := json.Valid([]byte(text)); want != (err == nil) {
						t.Errorf("%q: error %v, but encoding/json says %v", text, err, want)
					}
					if got := isNumber([]byte(text)); got != json.Valid([]byte(text)) {
						t.Errorf("%q: is a number: %v", text, got)
					}
				}
			}
		}
	}
}

// TestQuote reads what Quote has written.
func TestQuote(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", `a"b\`, "\u2028<ä>\x00\n"} {
		var got string
		err := Read(context.Background(), Quote(text), func(r *Reader) (err error) { got, err = r.Text(); return err })
		if err != nil || got != text {
			t.Errorf("%q, error %v, want %q", got, err, text)
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
