package checkpoint

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"

	"gogcl.dev/internal/safetensors"
	"gogcl.dev/internal/strictjson"
	"gogcl.dev/tensor"
)

const (
	format  = "gogcl checkpoint"
	version = 1

	// maxIndexBytes is room for some millions of shards; it is what package safetensors allows a header.
	maxIndexBytes = 100_000_000

	idBytes = 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// index is what index.json holds.
type index struct {
	id      string // which all files of a checkpoint have, and no other's
	meta    map[string]string
	tensors []saved
}

// saved is a tensor that the index speaks of, with the checksum of each of its shards.
type saved struct {
	name  string
	dtype tensor.DType
	shape tensor.Shape
	sums  []uint32 // crc32c of the bytes in the file, padding too
	layout
}

// files is how many shards the tensor with the most of them has.
func (x *index) files() int {
	most := 0
	for _, t := range x.tensors {
		most = max(most, t.shards)
	}
	return most
}

// with is the name of a tensor that has a shard k, and how many others have.
func (x *index) with(k int) string {
	var names []string
	for _, t := range x.tensors {
		if t.shards > k {
			names = append(names, t.name)
		}
	}
	if len(names) == 1 {
		return fmt.Sprintf("tensor %.100q", names[0])
	}
	return fmt.Sprintf("tensor %.100q and %d more", names[0], len(names)-1)
}

// encode writes the index: a checksum, and what it is of, byte by byte. The error: more bytes than that.
func (x *index) encode(most int) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n    \"format\": %q,\n    \"version\": %d,\n    \"id\": %q,\n    \"meta\": {",
		format, version, x.id)
	for i, key := range slices.Sorted(maps.Keys(x.meta)) {
		fmt.Fprintf(&b, "%s\n      %s: %s", comma(i), strictjson.Quote(key), strictjson.Quote(x.meta[key]))
	}
	b.WriteString("\n    },\n    \"tensors\": [")
	for i, t := range x.tensors {
		shape, err := json.Marshal(append(tensor.Shape{}, t.shape...)) // null, if it were nil
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s\n      {\"name\": %s, \"dtype\": \"%v\", \"shape\": %s, \"crc32c\": [",
			comma(i), strictjson.Quote(t.name), t.dtype, shape)
		for k, sum := range t.sums {
			fmt.Fprintf(&b, "%s\"%08x\"", comma(k), sum)
		}
		b.WriteString("]}")
	}
	b.WriteString("\n    ]\n  }")
	all := fmt.Appendf(nil, "{\n  \"crc32c\": \"%08x\",\n  \"checkpoint\": %s\n}\n",
		crc32.Checksum(b.Bytes(), castagnoli), b.Bytes())
	if len(all) > most {
		return nil, fmt.Errorf("the index has %d bytes, at most %d are allowed", len(all), most)
	}
	return all, nil
}

func comma(i int) string {
	if i > 0 {
		return ","
	}
	return ""
}

// parseIndex reads an index. Whatever it says is possible, by itself.
func parseIndex(ctx context.Context, data []byte) (*index, error) {
	x := &index{}
	err := strictjson.Read(ctx, data, func(r *strictjson.Reader) error {
		var sum uint32
		var inner []byte
		err := r.Members(map[string]func() error{
			"crc32c":     func() (err error) { sum, err = parseSum(r); return err },
			"checkpoint": func() (err error) { inner, err = r.Raw(); return err },
		})
		if err != nil {
			return err
		}
		if got := crc32.Checksum(inner, castagnoli); got != sum {
			return fmt.Errorf("it is damaged: checksum %08x, want %08x", got, sum)
		}
		return strictjson.Read(ctx, inner, x.parse)
	})
	return x, err
}

// parseSum reads a checksum of eight hexadecimal digits.
func parseSum(r *strictjson.Reader) (uint32, error) {
	text, err := r.Text()
	if err != nil {
		return 0, err
	}
	sum, err := strconv.ParseUint(text, 16, 32)
	if err != nil || fmt.Sprintf("%08x", sum) != text {
		return 0, fmt.Errorf("crc32c: want 8 hexadecimal digits, found %.100q", text)
	}
	return uint32(sum), nil
}

func (x *index) parse(r *strictjson.Reader) error {
	names := map[string]struct{}{}
	return r.Members(map[string]func() error{
		"format": func() error {
			text, err := r.Text()
			if err == nil && text != format {
				err = fmt.Errorf("format: want %q, found %.100q", format, text)
			}
			return err
		},
		"version": func() error {
			n, err := r.Count()
			if err == nil && n != version {
				err = fmt.Errorf("its format has version %d, this program reads version %d", n, version)
			}
			return err
		},
		"id": func() (err error) {
			x.id, err = r.Text()
			if b, bad := hex.DecodeString(x.id); err == nil &&
				(bad != nil || hex.EncodeToString(b) != x.id || len(b) != idBytes) {
				err = fmt.Errorf("id: want %d hexadecimal digits, found %.100q", 2*idBytes, x.id)
			}
			return err
		},
		"meta": func() error {
			x.meta = map[string]string{}
			return r.Object(safetensors.MaxMeta, func(key string) (err error) {
				x.meta[key], err = r.Text()
				return err
			})
		},
		"tensors": func() error {
			return r.Array(func() error {
				t, err := parseTensor(r)
				if _, again := names[t.name]; again && err == nil {
					err = errors.New("a second one of that name")
				}
				if err != nil {
					return fmt.Errorf("tensor %.100q: %w", t.name, err)
				}
				names[t.name] = struct{}{}
				x.tensors = append(x.tensors, t)
				return safetensors.CheckCounts(len(x.tensors), 0)
			})
		},
	})
}

// parseTensor reads a tensor. With an error it has the name, if that came first.
func parseTensor(r *strictjson.Reader) (t saved, err error) {
	err = r.Members(map[string]func() error{
		"name": func() (err error) { t.name, err = r.Text(); return err },
		"dtype": func() error {
			text, err := r.Text()
			if err == nil {
				t.dtype, err = tensor.ParseDType(text)
			}
			return err
		},
		"shape": func() error {
			shape, err := r.Ints(safetensors.MaxRank)
			if err != nil {
				return fmt.Errorf("shape: %w", err)
			}
			t.shape = shape
			return nil
		},
		"crc32c": func() error {
			return r.Array(func() error {
				if len(t.sums) == maxShards {
					return fmt.Errorf("more than %d shards", maxShards)
				}
				sum, err := parseSum(r)
				t.sums = append(t.sums, sum)
				return err
			})
		},
	})
	if err == nil {
		t.layout, err = check(t.name, t.dtype, t.shape, len(t.sums))
	}
	return t, err
}

// What the files of shards say of themselves in their own map of strings.
const (
	fileFormat     = "format"
	fileCheckpoint = "checkpoint"
	fileShard      = "shard"
)

func (x *index) fileMeta(k int) map[string]string {
	return map[string]string{fileFormat: format, fileCheckpoint: x.id, fileShard: fmt.Sprintf("%d of %d", k, x.files())}
}

// inFile lists the tensors of which file k has a shard, those with the widest elements first, so that all lie at
// multiples of their size, as those who map files want it.
func (x *index) inFile(k int) []*saved {
	var in []*saved
	for i := range x.tensors {
		if x.tensors[i].shards > k {
			in = append(in, &x.tensors[i])
		}
	}
	slices.SortStableFunc(in, func(a, b *saved) int { return b.dtype.Size() - a.dtype.Size() })
	return in
}

// shard is what a file says of a shard of t.
func (t *saved) shard() safetensors.Tensor {
	return safetensors.Tensor{Name: t.name, DType: t.dtype, Shape: tensor.Shape{t.per}}
}
