package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// named is a collective as drawings and reports call it.
func named(c Collective, own *CustomContract) string {
	if own != nil {
		return own.title()
	}
	return c.String()
}

// The labels of the rows of a drawing that say what a contract is, in the column of the rounds' numbers, and that of
// the line of sizes.
const (
	rowIn      = "in"
	rowOut     = "out"
	sizesLabel = "sizes"
)

// sizesText is the line of the relative sizes, if they are not all one.
func (c *CustomContract) sizesText() string {
	if c == nil || c.Sizes == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString(sizesLabel)
	for i := 0; i < len(c.Sizes); {
		first := i
		for i++; i < len(c.Sizes) && c.Sizes[i] == c.Sizes[first]; i++ {
		}
		fmt.Fprintf(&b, " %d", c.Sizes[first])
		if i > first+1 {
			fmt.Fprintf(&b, "x%d", i-first)
		}
	}
	return b.String() + "\n"
}

// rows are those of a drawing that say what a contract is: for each rank the chunks of its Input, and below them those
// of its Output with the ranks that contribute to them, if the contract says. Of a wrong contract it is some of that.
func (c *CustomContract) rows(ranks int) [][]string {
	if c == nil {
		return nil
	}
	in, out := make([][]string, ranks), make([][]string, ranks)
	for rank := range ranks {
		if rank < len(c.Inputs) && len(c.Inputs[rank]) > 0 {
			in[rank] = []string{ranges(c.Inputs[rank])}
		}
		if rank >= len(c.Outputs) {
			continue
		}
		list := c.Outputs[rank]
		if c.Wants == nil || rank >= len(c.Wants) {
			if len(list) > 0 {
				out[rank] = []string{ranges(list)}
			}
			continue
		}
		wants := c.Wants[rank]
		for i, n := 0, min(len(list), len(wants)); i < n; {
			first := i
			for i++; i < n && slices.Equal(wants[i], wants[first]); i++ {
			}
			out[rank] = append(out[rank], fmt.Sprintf("%s of %s", ranges(list[first:i]), ranges(wants[first])))
		}
	}
	return append(labelled(rowIn, in), labelled(rowOut, out)...)
}

// labelled makes rows of columns, the first with a label.
func labelled(label string, columns [][]string) [][]string {
	height := 1
	for _, column := range columns {
		height = max(height, len(column))
	}
	rows := make([][]string, height)
	for i := range rows {
		rows[i] = make([]string, 1+len(columns))
		for rank, column := range columns {
			if i < len(column) {
				rows[i][1+rank] = column[i]
			}
		}
	}
	rows[0][0] = label
	return rows
}
