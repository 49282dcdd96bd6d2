package commgroup

import "encoding/binary"

// table holds the groups of lists as numbers of 32 bits in a string, so that a [Layout] can be compared and answers
// without a search:
//
//	group and rank of replica 0, of replica 1, ...   2N numbers
//	members of group 0, of group 1, ...              N numbers
//	where the members of each group begin, and N     groups+1 numbers
type table string

// newTable makes the table of groups in canonical order. They hold n replicas together.
func newTable(groups [][]int, n int) table {
	numbers := make([]int, 3*n, 3*n+len(groups)+1)
	end := 0
	for g, members := range groups {
		numbers = append(numbers, end)
		for rank, replica := range members {
			numbers[2*replica], numbers[2*replica+1] = g, rank
			numbers[2*n+end] = replica
			end++
		}
	}
	numbers = append(numbers, end)
	b := make([]byte, 0, numberBytes*len(numbers))
	for _, v := range numbers {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return table(b)
}

const numberBytes = 4

// at returns number i.
func (t table) at(i int) int {
	b := t[numberBytes*i : numberBytes*(i+1)]
	return int(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)
}

// groups returns the number of groups of n replicas.
func (t table) groups(n int) int { return len(t)/numberBytes - 3*n - 1 }

// span returns where the members of a group begin and end.
func (t table) span(n, group int) (first, end int) { return t.at(3*n + group), t.at(3*n + group + 1) }
