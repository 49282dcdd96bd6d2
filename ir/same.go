package ir

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"slices"
	"strings"

	"gogcl.dev/commgroup"
	"gogcl.dev/tensor"
)

// Initial is what a package keeps with a program ([Program.Attached]) if it has data, beside constants and variables,
// that all processes of a job are to have alike.
type Initial interface {
	// Initial calls data for each, in the same order on all processes. what names it in an error, as a variable's
	// label.
	Initial(data func(what string, bytes []byte))
}

// datum is data of a program that all processes of a job have alike.
type datum struct {
	what string // as an error names it
	sum  uint64
}

// data are the constants, the first values of variables, and what packages keep. Their number and order follow from
// the program's text.
func (p *Program) data() []datum {
	var out []datum
	sums := map[*tensor.Tensor]uint64{} // gradients take constants of the graph that they are of
	add := func(what string, t *tensor.Tensor) {
		sum, is := sums[t]
		if !is {
			sum = sumOf(t.Bytes())
			sums[t] = sum
		}
		out = append(out, datum{what, sum})
	}
	for _, g := range p.graphs {
		for _, n := range g.nodes {
			if p, is := n.op.(persistent); is {
				data, wrong := p.begins(n)
				add(wrong, data)
			}
		}
	}
	var kept []datum
	for _, x := range p.attached {
		if i, is := x.(Initial); is {
			i.Initial(func(what string, data []byte) {
				kept = append(kept, datum{what + " begins with other data", sumOf(data)})
			})
		}
	}
	slices.SortStableFunc(kept, func(a, b datum) int { return strings.Compare(a.what, b.what) }) // a map has no order
	return append(out, kept...)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumOf is a hash of data: two CRCs, for which processors have instructions. Data that differs only within 32 bits that
// follow each other has another hash; other data but for one chance in 2^64. BenchmarkSumOf has the cost.
func sumOf(data []byte) uint64 {
	var a, b uint32
	for len(data) > 0 {
		block := data[:min(len(data), sumBlock)]
		a, b = crc32.Update(a, crc32.IEEETable, block), crc32.Update(b, castagnoli, block)
		data = data[len(block):]
	}
	return uint64(a)<<32 | uint64(b)
}

// sumBlock is how many bytes go through both CRCs at a time: a part of a first-level cache.
const sumBlock = 16 << 10

// compare returns an error unless all processes of the job have the same program: its text, and then its data.
func (p *Program) compare(ctx context.Context, j Job) error {
	data := p.data()
	var all []byte
	for _, d := range data {
		all = binary.LittleEndian.AppendUint64(all, d.sum)
	}
	text := fnv.New64a()
	_, _ = text.Write([]byte(p.text(formOf))) // never fails
	_, _ = fmt.Fprint(text, len(data))
	mine := binary.LittleEndian.AppendUint64(nil, text.Sum64())
	mine = binary.LittleEndian.AppendUint64(mine, sumOf(all))
	heads, err := p.gather(ctx, j, mine)
	if err != nil {
		return err
	}
	if odd := unlike(heads, len(mine), 0, 8); odd != nil {
		return fmt.Errorf("ir: %s built another program than replica 0: in a job all processes build the same",
			plural(odd, "has", "have"))
	}
	if unlike(heads, len(mine), 8, 16) == nil {
		return nil
	}
	// All processes have found that something differs, and look for it together, some data at a time.
	atOnce := max(1, mostCompared/p.replicas)
	for len(data) > 0 {
		n := min(atOnce, len(data))
		sums, err := p.gather(ctx, j, all[:8*n])
		if err != nil {
			return err
		}
		for i, d := range data[:n] {
			if odd := unlike(sums, 8*n, 8*i, 8*i+8); odd != nil {
				return fmt.Errorf("ir: %s on %s than on replica 0: in a job all processes build the same program, with the "+
					"same data", d.what, plural(odd, "", ""))
			}
		}
		data, all = data[n:], all[8*n:]
	}
	return fmt.Errorf("ir: %s other data than replica 0: in a job all processes build the same program",
		plural(unlike(heads, len(mine), 8, 16), "has", "have"))
}

// mostCompared is how many hashes of data, of all replicas together, are compared at a time.
const mostCompared = 1 << 14

// gather gathers as many bytes of every replica.
func (p *Program) gather(ctx context.Context, j Job, mine []byte) ([]byte, error) {
	all := make([]byte, len(mine)*p.replicas)
	if err := j.Gather(ctx, commgroup.Group{}, all, mine); err != nil {
		return nil, fmt.Errorf("ir: %w", err)
	}
	return all, nil
}

// unlike lists the replicas that have something else than replica 0 in bytes from to to, of so many each.
func unlike(all []byte, each, from, to int) (replicas []int) {
	for r := range len(all) / each {
		if !bytes.Equal(all[r*each+from:r*each+to], all[from:to]) {
			replicas = append(replicas, r)
		}
	}
	return replicas
}

// mostNamed is how many replicas an error names.
const mostNamed = 8

// plural names replicas, with a verb for one and for several: "replica 3 has", "replicas 1, 2 have".
func plural(replicas []int, one, several string) string {
	noun, verb := "replica ", one
	if len(replicas) > 1 {
		noun, verb = "replicas ", several
	}
	var names []string
	for _, r := range replicas[:min(len(replicas), mostNamed)] {
		names = append(names, fmt.Sprint(r))
	}
	text := noun + strings.Join(names, ", ")
	if more := len(replicas) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return strings.TrimSpace(text + " " + verb)
}
