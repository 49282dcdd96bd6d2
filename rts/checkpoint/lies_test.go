package checkpoint

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/tensor"
)

// sealIndex puts the right checksum into an index.
func sealIndex(data []byte) []byte {
	const before, between = "{\n  \"crc32c\": \"", "\",\n  \"checkpoint\": "
	inner := data[len(before)+8+len(between) : len(data)-3]
	return slices.Concat([]byte(before), fmt.Appendf(nil, "%08x", crc32.Checksum(inner, castagnoli)), []byte(between),
		inner, []byte("\n}\n"))
}

// TestIndexText looks at an index.
func TestIndexText(t *testing.T) {
	x := &index{id: strings.Repeat("0a", 16), meta: map[string]string{"b": "\"", "a": ""}, tensors: []saved{
		{name: "w", dtype: tensor.F32, shape: tensor.Shape{2, 3}, sums: []uint32{1, 0xabcdef01}},
		{name: "step", dtype: tensor.I64, sums: []uint32{0}},
	}}
	got, err := x.encode(maxIndexBytes)
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "crc32c": "4067cfb2",
  "checkpoint": {
    "format": "gogcl checkpoint",
    "version": 1,
    "id": "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a",
    "meta": {
      "a": "",
      "b": "\""
    },
    "tensors": [
      {"name": "w", "dtype": "float32", "shape": [2,3], "crc32c": ["00000001","abcdef01"]},
      {"name": "step", "dtype": "int64", "shape": [], "crc32c": ["00000000"]}
    ]
  }
}
`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !bytes.Equal(sealIndex(got), got) {
		t.Error("the checksum is another one after sealing")
	}
	if _, err := x.encode(len(want)); err != nil {
		t.Error(err)
	}
	_, err = x.encode(len(want) - 1)
	wantError(t, err, fmt.Sprintf("the index has %d bytes, at most %d are allowed", len(want), len(want)-1))
}

// lie is a checkpoint of the model small with 3 shards, in which something is wrong: the name of a file, what is done
// to what is in it, and the error, after the file's path.
type lie struct {
	name, file string
	change     func(data []byte) []byte
	want       string
}

const (
	shard0 = "shard-00000-of-00003.safetensors"
	shard1 = "shard-00001-of-00003.safetensors"
)

// swap changes text in a file.
func swap(old, new string) func(data []byte) []byte {
	return func(data []byte) []byte {
		if !bytes.Contains(data, []byte(old)) {
			panic(fmt.Sprintf("%q is not in %q", old, data))
		}
		return bytes.Replace(data, []byte(old), []byte(new), 1)
	}
}

// replace changes text in an index, and its checksum.
func replace(old, new string) func(data []byte) []byte {
	return func(data []byte) []byte { return sealIndex(swap(old, new)(data)) }
}

// header gives a file of shards another header, of the right length.
func header(change func(data []byte) []byte) func(data []byte) []byte {
	return func(data []byte) []byte {
		n := 8 + binary.LittleEndian.Uint64(data)
		h := change(slices.Clone(data[8:n]))
		return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(h))), h, data[n:])
	}
}

// other is another hexadecimal digit.
func other(digit byte) byte {
	if digit == '0' {
		return '1'
	}
	return '0'
}

// keys are members of an object, each with a name of its own.
func keys(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"%x":""`, i)
	}
	return all
}

func lies() []lie {
	const damaged = ": it is damaged: checksum "
	flip := func(at int) func(data []byte) []byte {
		return func(data []byte) []byte { data[(at+len(data))%len(data)] ^= 1; return data }
	}
	cut := func(n int) func(data []byte) []byte { return func(data []byte) []byte { return data[:len(data)-n] } }
	more := func(data []byte) []byte { return append(data, 0) }
	tooMany := ": has more than"
	if math.MaxInt == math.MaxInt32 {
		tooMany = "too many for this machine"
	}
	return []lie{
		{"index missing", indexName, func([]byte) []byte { return nil }, "no such file"},
		{"index empty", indexName, func([]byte) []byte { return []byte{} }, ": after byte 0: want an object: unexpected EOF"},
		{"index truncated", indexName, cut(10), ": "},
		{"index longer", indexName, func(data []byte) []byte { return append(data, "{}"...) }, "want the end, found '{'"},
		{"index damaged", indexName, swap("17", "18"), damaged},
		{"checksum damaged", indexName, func(data []byte) []byte {
			at := len("{\n  \"crc32c\": \"")
			data[at] = other(data[at])
			return data
		}, damaged},
		{"checksum no number", indexName, func(data []byte) []byte { data[len("{\n  \"crc32c\": \"")] = 'A'; return data }, ": crc32c: want 8 hexadecimal digits, found \"A"},
		{"foreign index", indexName, func([]byte) []byte {
			return []byte(`{"metadata":{"total_size":24},"weight_map":{"w":"model-00001-of-00001.safetensors"}}`)
		}, `the name "metadata" is none of this object's`},
		{"no checksum", indexName, func([]byte) []byte { return []byte(`{"checkpoint":{}}`) }, `the object has no ["crc32c"]`},
		{"another format", indexName, replace("gogcl checkpoint", "other checkpoint"), `format: want "gogcl checkpoint", found "other checkpoint"`},
		{"version", indexName, replace(`"version": 1`, `"version": 2`), "its format has version 2, this program reads version 1"},
		{"id too short", indexName, replace(`"id": "`, `"id": "ab", "Id": "`), `id: want 32 hexadecimal digits, found "ab"`},
		{"id in capitals", indexName, func(data []byte) []byte {
			at := bytes.Index(data, []byte(`"id": "`)) + len(`"id": "`)
			data[at] = 'A'
			return sealIndex(data)
		}, `id: want 32 hexadecimal digits, found "A`},
		{"id no number", indexName, replace(`"id": "`, `"id": "?`), `id: want 32 hexadecimal digits, found "?`},
		{"id of another", indexName, func(data []byte) []byte {
			at := bytes.Index(data, []byte(`"id": "`)) + len(`"id": "`)
			data[at] = other(data[at])
			return sealIndex(data)
		}, ""}, // the error is that of the shards, below
		{"meta twice", indexName, replace(`"step": "17"`, `"step": "17", "step": "18"`), `the name "step" for the second time in one object`},
		{"meta no string", indexName, replace(`"17"`, `17`), `want a string, found the number 17`},
		{"no meta", indexName, replace(`"meta"`, `"Meta"`), `the name "Meta" is none of this object's`},
		{"tensor twice", indexName, replace(`"name": "step"`, `"name": "w"`), `: tensor "w": a second one of that name`},
		{"tensor without a name", indexName, replace(`"name": "step"`, `"name": ""`), `: tensor "": it has no name`},
		{"another name", indexName, replace(`"name": "step"`, `"name": "stop"`), `: tensor "step": the checkpoint has none of that name`},
		{"one more", indexName, replace(`"tensors": [`,
			`"tensors": [{"name":"x","dtype":"bool","shape":[],"crc32c":["00000000"]},`),
			`: tensor "x": the checkpoint has it, and nobody wants it`},
		{"dtype", indexName, replace(`"float32"`, `"float64"`), `: tensor "w": the checkpoint has float64 of shape (2, 3), wanted: float32 of shape (2, 3)`},
		{"dtype unknown", indexName, replace(`"float32"`, `"float31"`), `: tensor "w": tensor: `},
		{"shape", indexName, replace(`[2,3]`, `[3,2]`), `: tensor "w": the checkpoint has float32 of shape (3, 2), wanted: float32 of shape (2, 3)`},
		{"shape overflows", indexName, replace(`[2,3]`, `[4611686018427387904,8]`), `: tensor "w": `},
		{"shape overflows, says what", indexName, replace(`[2,3]`, `[4611686018427387904,8]`), strings.TrimPrefix(tooMany, ": has ")},
		{"bytes overflow", indexName, replace(`[2,3]`, fmt.Sprintf(`[%d]`, math.MaxInt/2)), `: tensor "w": float32 of shape`},
		{"shape of 65 dimensions", indexName, replace(`[2,3]`, `[2,3`+strings.Repeat(",1", 63)+`]`), `: tensor "w": shape: before byte `},
		{"shape of 65 dimensions, says what", indexName, replace(`[2,3]`, `[2,3`+strings.Repeat(",1", 63)+`]`), `an array of more than 64 numbers`},
		{"99,999 shards", indexName, replace(`"shape": [], "crc32c": [`, `"shape": [], "crc32c": [`+strings.Repeat(`"00000000",`, 99_999)), `: tensor "step": more than 99999 shards`},
		{"65,537 strings", indexName, replace(`"step": "17"`, strings.Join(keys(65_537), ",")), `an object of more than 65536 names`},
		{"name of 3 MB", indexName, replace(`"name": "step"`, `"name": "`+strings.Repeat("s", 3_000_000)+`"`), `: tensor "step": the checkpoint has none of that name`},
		{"name of 3 MB, and no shards", indexName, func(data []byte) []byte {
			at := bytes.LastIndex(data, []byte(`["`))
			data = slices.Delete(data, at+1, at+11)
			return replace(`"name": "step"`, `"name": "`+strings.Repeat("s", 3_000_000)+`"`)(data)
		}, `: tensor "` + strings.Repeat("s", 100) + `": 0 shards`},
		{"dtype of 3 MB", indexName, replace(`"float32"`, `"`+strings.Repeat("s", 3_000_000)+`"`), `: tensor "w": tensor: unknown dtype "sss`},
		{"a name more of 3 MB", indexName,
			replace(`"tensors": [`, `"tensors": [{"name":"`+strings.Repeat("s",
				3_000_000)+`","dtype":"bool","shape":[],"crc32c":["00000000"]},`),
			`: tensor "` + strings.Repeat("s", 100) + `": the checkpoint has it, and nobody wants it`},
		{"shape negative", indexName, replace(`[2,3]`, `[-2,-3]`), `: tensor "w": shape: before byte `},
		{"no shards", indexName, replace(`"shape": [], "crc32c": ["`, `"shape": [], "crc32c": [], "x": ["`), `: tensor "step": before byte `},
		{"zero shards", indexName, func(data []byte) []byte {
			at := bytes.LastIndex(data, []byte(`["`))
			return sealIndex(slices.Delete(data, at+1, at+11))
		}, `: tensor "step": 0 shards, want 1 to 99999`},
		{"checksum of a shard no string", indexName, replace(`"shape": [], "crc32c": ["`, `"shape": [], "crc32c": [1,"`), `: tensor "step": before byte `},
		{"checksum of a shard short", indexName, replace(`"shape": [], "crc32c": ["`, `"shape": [], "crc32c": ["1","`), `: tensor "step": crc32c: want 8 hexadecimal digits, found "1"`},

		{"shard missing", shard1, func([]byte) []byte { return nil }, "no such file"},
		{"shard empty", shard1, func([]byte) []byte { return []byte{} }, ": it is truncated: 0 bytes"},
		{"shard truncated", shard1, cut(1), `: tensor "w": it is truncated: its bytes end at 8, the file has 7`},
		{"shard longer", shard1, more, ": the last 1 bytes are no tensor's"},
		{"shard damaged", shard1, flip(-1), `: tensor "w"` + damaged},
		{"shard damaged, the other tensor", shard0, flip(-9), `: tensor "step"` + damaged},
		{"header too long", shard1, func(data []byte) []byte { data[7] = 1; return data }, ": it says that its header has "},
		{"header damaged", shard1, flip(8), ": header: it does not begin with {"},
		{"shard of another checkpoint", shard1, header(func(h []byte) []byte {
			at := bytes.Index(h, []byte(`"checkpoint":"`)) + len(`"checkpoint":"`)
			h[at] = other(h[at])
			return h
		}), ": it is not of this checkpoint: its checkpoint is \""},
		{"shard of no checkpoint", shard1, header(swap(`"checkpoint":`, `"model":`)), `: it is not of this checkpoint: its checkpoint is "", want "`},
		{"shard of another format", shard1, header(swap(`gogcl checkpoint`, `pt`)), `: it is not of this checkpoint: its format is "pt", want "gogcl checkpoint"`},
		{"another shard", shard1, header(swap(`1 of 3`, `2 of 3`)), `: it is not of this checkpoint: its shard is "2 of 3", want "1 of 3"`},
		{"another tensor in the shard", shard1, header(swap(`"w"`, `"v"`)), `: tensor "v": the index has no shard 1 of it`},
		{"a tensor more in the shard", shard1,
			header(swap(`"w"`, `"step":{"dtype":"I64","shape":[0],"data_offsets":[0,0]},"w"`)),
			`: tensor "step": the index has no shard 1 of it`},
		{"a tensor less in the shard", shard0, func(data []byte) []byte {
			n := 8 + binary.LittleEndian.Uint64(data)
			h := bytes.Replace(data[8:n], []byte(`"step":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},`), nil, 1)
			h = bytes.Replace(h, []byte(`[8,16]`), []byte(`[0,8]`), 1)
			return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(h))), h, data[n+8:])
		}, `: tensor "step": it is not in the file`},
		{"a name of 3 MB in the shard", shard1, header(swap(`"w"`, `"`+strings.Repeat("s", 3_000_000)+`"`)), `: tensor "` + strings.Repeat("s", 100) + `": the index has no shard 1 of it`},
		{"its format of 3 MB", shard1, header(swap(`gogcl checkpoint`, strings.Repeat("s", 3_000_000))), `: it is not of this checkpoint: its format is "sss`},
		{"dtype of the shard", shard1, header(swap(`"F32"`, `"I32"`)), `: tensor "w": int32 of shape (2,), by the index it is float32 of shape (2,)`},
		{"dtype of the shard unknown", shard1, header(swap(`"F32"`, `"F8_E5M2"`)), `: header: tensor "w": dtype F8_E5M2 is none of gogcl's element types`},
		{"shape of the shard", shard1, header(swap(`[2]`, `[1,2]`)), `: tensor "w": float32 of shape (1, 2), by the index it is float32 of shape (2,)`},
		{"length of the shard", shard1, header(swap(`[2],"data_offsets":[0,8]`, `[1],"data_offsets":[4,8]`)), `: tensor "w": its bytes begin at 4, and those from 0 on are no tensor's`},
		{"offsets of the shard", shard1, header(swap(`[0,8]`, `[0,7]`)), `: header: tensor "w": data_offsets: 0 to 7 are 7 bytes, float32 of shape (2,) takes 8`},
		{"overlap in the shard", shard0, header(swap(`[8,16]`, `[4,12]`)), `: tensor "w": its bytes 4 to 12 overlap those of tensor "step", which end at 8`},
	}
}

// TestLies loads each of the lies: an error that names the file and what is wrong, and nothing is written. When the
// file is mended, all is well.
func TestLies(t *testing.T) {
	dir := t.TempDir()
	saveIt(t, dir, small(t, 3).fill(1), map[string]string{"step": "17"})
	for _, l := range lies() {
		t.Run(l.name, func(t *testing.T) {
			path := filepath.Join(dir, "checkpoint-00000001", l.file)
			good, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if bad := l.change(slices.Clone(good)); bad != nil {
				err = os.WriteFile(path, bad, 0o666)
			} else {
				err = os.Remove(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			m := small(t, 2)
			_, err = Load(context.Background(), dir, m.tensors)
			want := path + l.want
			switch {
			case l.want == "":
				want = filepath.Join(dir, "checkpoint-00000001", shard0) + ": it is not of this checkpoint: its " +
					"checkpoint is \""
			case !strings.HasPrefix(l.want, ":"):
				wantError(t, err, path)
				want = l.want
			}
			wantError(t, err, "checkpoint: load from "+dir+": ", want)
			if n := len(fmt.Sprint(err)); n > 2000 {
				t.Errorf("the error has %d bytes", n)
			}
			if l.file == shard1 && !strings.Contains(l.name, "3 MB") {
				wantError(t, err, `tensor "w"`)
			}
			if m.writes > 0 {
				t.Errorf("%d shards were written", m.writes)
			}
			if err := os.WriteFile(path, good, 0o666); err != nil {
				t.Fatal(err)
			}
		})
	}
	m := small(t, 2)
	if meta := loadIt(t, dir, m); meta["step"] != "17" {
		t.Errorf("meta %v", meta)
	}
	m.wantEqual(t, small(t, 2).fill(1))
}

// TestWanted loads a checkpoint that has other tensors than the program.
func TestWanted(t *testing.T) {
	dir := t.TempDir()
	saveIt(t, dir, small(t, 3), nil)
	index := filepath.Join(dir, "checkpoint-00000001", indexName)
	w, step := spec{"w", tensor.F32, tensor.Shape{2, 3}, 2}, spec{"step", tensor.I64, nil, 1}
	for _, tt := range []struct {
		specs []spec
		want  string
	}{
		{[]spec{w}, `tensor "step": the checkpoint has it, and nobody wants it`},
		{[]spec{w, step, {"b", tensor.F32, nil, 1}}, `tensor "b": the checkpoint has none of that name`},
		{[]spec{{"w", tensor.F64, tensor.Shape{2, 3}, 2}, step}, `tensor "w": the checkpoint has float32 of shape (2, 3), wanted: float64 of shape (2, 3)`},
		{[]spec{{"w", tensor.F32, tensor.Shape{6}, 2}, step}, `tensor "w": the checkpoint has float32 of shape (2, 3), wanted: float32 of shape (6,)`},
	} {
		m := newModel(t, tt.specs...)
		_, err := Load(context.Background(), dir, m.tensors)
		if wantError(t, err, "file "+index+": "+tt.want); m.writes > 0 {
			t.Errorf("%d shards were written", m.writes)
		}
	}
}

// TestNewestIsDamaged does not fall back.
func TestNewestIsDamaged(t *testing.T) {
	dir := t.TempDir()
	saveIt(t, dir, small(t, 2).fill(1), nil)
	saveIt(t, dir, small(t, 2).fill(2), nil, Keep(2))
	path := filepath.Join(dir, "checkpoint-00000002")
	if err := os.Truncate(filepath.Join(path, "shard-00001-of-00002.safetensors"), 20); err != nil {
		t.Fatal(err)
	}
	m := small(t, 2)
	_, err := Load(context.Background(), dir, m.tensors)
	wantError(t, err, path, "it is truncated")
	if err := os.Rename(path, filepath.Join(dir, "damaged")); err != nil {
		t.Fatal(err)
	}
	loadIt(t, dir, m)
	m.wantEqual(t, small(t, 2).fill(1))
}

// TestNewestIsElsewhere has the newest checkpoint behind a symbolic link, or something else in its place: the one
// before is not taken for it.
func TestNewestIsElsewhere(t *testing.T) {
	dir := t.TempDir()
	saveIt(t, dir, small(t, 2).fill(1), nil)
	saveIt(t, dir, small(t, 2).fill(2), nil, Keep(2))
	path, elsewhere := filepath.Join(dir, "checkpoint-00000002"), filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Rename(path, elsewhere); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, path); err != nil {
		t.Skip("no symbolic links: ", err)
	}
	m := small(t, 2)
	loadIt(t, dir, m)
	m.wantEqual(t, small(t, 2).fill(2))

	m = small(t, 2)
	if err := os.Rename(elsewhere, elsewhere+"s"); err != nil {
		t.Fatal(err)
	}
	_, err := Load(context.Background(), dir, m.tensors)
	wantError(t, err, path+": no such file")
	if err := errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	_, err = Load(context.Background(), dir, m.tensors)
	wantError(t, err, "file "+path+": it has the name of a checkpoint, and is not a directory")
	if m.writes > 0 {
		t.Errorf("%d shards were written", m.writes)
	}
	saveIt(t, dir, small(t, 2).fill(3), nil) // whose number is higher
	loadIt(t, dir, m)
	m.wantEqual(t, small(t, 2).fill(3))
}

// TestChangedMeanwhile changes a file between the two times that Load reads it.
func TestChangedMeanwhile(t *testing.T) {
	for k := range 3 {
		dir := t.TempDir()
		saveIt(t, dir, small(t, 3).fill(1), nil)
		m := newModel(t, spec{"step", tensor.I64, nil, 1}, spec{"w", tensor.F32, tensor.Shape{2, 3}, 2})
		path := filepath.Join(dir, "checkpoint-00000001", shardName(k, 3))
		m.tensors[0].Write = func(int, *tensor.Tensor) error {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			data[len(data)-1] ^= 1
			return os.WriteFile(path, data, 0o666)
		}
		_, err := Load(context.Background(), dir, m.tensors)
		wantError(t, err, path+`: tensor "w": it is damaged: checksum `)
	}
}

// TestIndexTooLong opens an index of more bytes than there may be, of which it reads none.
func TestIndexTooLong(t *testing.T) {
	dir := t.TempDir()
	saveIt(t, dir, small(t, 3), nil)
	path := filepath.Join(dir, "checkpoint-00000001", indexName)
	if err := os.Truncate(path, maxIndexBytes+1); err != nil {
		t.Fatal(err)
	}
	_, err := Load(context.Background(), dir, small(t, 2).tensors)
	wantError(t, err, path+": it has 100000001 bytes, at most 100000000 are allowed")
}

// TestIndexMemory parses indexes that are made to take much memory, and counts what is allocated, all in all.
func TestIndexMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("what is allocated is the same with -short, and long files take long")
	}
	x := &index{id: strings.Repeat("0a", 16), tensors: []saved{{name: "w", dtype: tensor.F32, sums: []uint32{0}}}}
	good, err := x.encode(maxIndexBytes)
	if err != nil {
		t.Fatal(err)
	}
	tensors := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `{"name":"%x","dtype":"bool","shape":[],"crc32c":["00000000"]},`, i)
		}
		return b.String()
	}
	for name, tt := range map[string]struct {
		change func(data []byte) []byte
		most   uint64 // times the length of the index
	}{
		"shape":   {replace(`"shape": [`, `"shape": [`+strings.Repeat("0,", 1<<20)+"0"), 1},
		"shards":  {replace(`"crc32c": ["0`, `"crc32c": [`+strings.Repeat(`"00000000",`, 1<<20)+`"0`), 2},
		"strings": {replace(`"meta": {`, `"meta": {`+strings.Join(keys(1<<20), ",")), 3},
		"tensors": {replace(`"tensors": [`, `"tensors": [`+tensors(1<<15)), 20},
	} {
		data := tt.change(bytes.Clone(good))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := parseIndex(context.Background(), data)
		runtime.ReadMemStats(&after)
		got := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: %.1f times the index, error %.200v", name, float64(got)/float64(len(data)), err)
		if most := tt.most*uint64(len(data)) + 1<<16; got > most {
			t.Errorf("%s: %d bytes for an index of %d, want at most %d", name, got, len(data), most)
		}
	}
}

// TestTooManyTensors parses an index of one tensor more than there may be.
func TestTooManyTensors(t *testing.T) {
	if testing.Short() {
		t.Skip("an index of 70 MB")
	}
	x := &index{id: strings.Repeat("0a", 16), tensors: make([]saved, 1<<20+1)}
	for i := range x.tensors {
		x.tensors[i] = saved{name: fmt.Sprint(i), dtype: tensor.U8, sums: []uint32{0}}
	}
	data, err := x.encode(maxIndexBytes)
	if err != nil {
		t.Fatal(err)
	}
	_, err = parseIndex(context.Background(), data)
	wantError(t, err, "1048577 tensors, at most 1048576 are allowed")
}
