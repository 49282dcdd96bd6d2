package schedule

import "slices"

// Bounds are what no schedule of a collective can do with less of.
//
//	                 rounds         most chunks sent    most chunks received    (n ranks, M chunks)
//	all-reduce       ceil(log n)    2M(n-1)/n           2M(n-1)/n
//	reduce-scatter   ceil(log n)    M(n-1)/n            M(n-1)/n
//	all-gather       ceil(log n)    M(n-1)/n            M(n-1)/n
//	all-to-all       ceil(log n)    M(n-1)/n            M(n-1)/n
//	broadcast        ceil(log n)    M                   M
//	reduce           ceil(log n)    M                   M
//	gather           ceil(log n)    M/n                 M(n-1)/n
//	scatter          ceil(log n)    M(n-1)/n            M/n
//
// Of a Custom collective the first is ceil(log k), where k counts a rank and those that it wants something of, or that
// want something of it. A rank sends what others want of its Input, and receives what others contribute to its Output.
//
// The base of the logarithm is one more than Report.Ports: what a rank has heard of grows by that factor in a round at
// most. With one peer at a time it is 2. See Chan, Heimlich, Purkayastha and van de Geijn, "Collective communication:
// theory, practice, and experience", 2007, for the table with one port, and Bruck et al. (methods, recursive_doubling)
// for several ports. A schedule may have the least of one column and not of another.
type Bounds struct {
	Rounds   int
	Sent     int // chunks, by the rank that sends most
	Received int // chunks, by the rank that receives most
}

// least finds the bounds of a schedule's collective with so many ports, from its contract:
//   - every collective brings something from one rank to all others, or from all others to one;
//   - a rank sends each chunk that another rank wants to have, or to combine, once at least, and receives a chunk for
//     each that its Output does not get from its own Input;
//   - the chunks that all ranks send are those that all receive, so the rank that sends most, or receives most, has the
//     mean at least. A combined chunk needs n-1 messages before the first rank can have it, and one more for each
//     further rank that wants it.
func least(s *Schedule, ports int) Bounds {
	if s.Custom != nil {
		return s.Custom.least(ports)
	}
	var b Bounds
	for reached := 1; reached < s.Size; reached *= max(ports, 1) + 1 {
		b.Rounds++
	}
	if s.Size == 1 {
		return b
	}
	var all int // chunks that all ranks send
	if s.Collective.Contract().Combines {
		b.Sent, b.Received, all = leastCombined(s)
	} else {
		b.Sent, b.Received, all = leastMoved(s)
	}
	mean := (all + s.Size - 1) / s.Size
	b.Sent, b.Received = max(b.Sent, mean), max(b.Received, mean)
	return b
}

// leastCombined is how many chunks a rank must send, one must receive, and all must send, where chunks are combined.
func leastCombined(s *Schedule) (sent, received, all int) {
	output := s.Collective.Contract().Output
	holders, last := make([]int, s.Chunks), make([]int, s.Chunks) // by chunk
	for rank := range s.Size {
		lo, hi := output.chunks(rank, s.Root, s.Size, s.Chunks)
		for f := lo; f < hi; f++ {
			holders[f]++
			last[f] = rank
		}
		received = max(received, hi-lo)
	}
	alone := make([]int, s.Size) // by rank: chunks that no other wants
	for f, n := range holders {
		all += s.Size + n - 2
		if n == 1 {
			alone[last[f]]++
		}
	}
	return s.Chunks - slices.Min(alone), received, all
}

// leastMoved is the same where chunks are only moved.
func leastMoved(s *Schedule) (sent, received, all int) {
	c := s.Collective.Contract()
	wanted := make([]uint64, (s.Size*s.Chunks+63)/64) // by rank and chunk of its Input: another rank wants it
	for rank := range s.Size {
		lo, hi := c.Output.chunks(rank, s.Root, s.Size, s.Chunks)
		n := 0
		for f := lo; f < hi; f++ {
			if from, number := c.source(rank, s.Root, f, s.Chunks/s.Size); from != rank {
				at := from*s.Chunks + number
				wanted[at/64] |= 1 << (at % 64)
				n++
			}
		}
		received = max(received, n)
		all += n
	}
	for rank := range s.Size {
		n := 0
		for at := rank * s.Chunks; at < (rank+1)*s.Chunks; at++ {
			n += int(wanted[at/64] >> (at % 64) & 1)
		}
		sent = max(sent, n)
	}
	return sent, received, all
}
