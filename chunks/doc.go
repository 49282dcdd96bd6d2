// Package chunks cuts data into pieces and joins pieces again.
//
// It has three parts. [Split] is the one rule by which n elements become k pieces, everywhere in the project; there is
// no other remainder rule. [Chunk], [Chunks] and [Concat] are what a reduction within a replica leaves on each IPU, and
// how it is put together again. [Mapping] says which elements of a replica's array are on which of its IPUs. The
// package knows neither what the elements are nor who holds or moves them.
//
//	10 elements, 4 pieces     │0 1│2 3 4│5 6│7 8 9│
//	3 elements, 4 pieces      ││0│1│2│               piece 0 is empty
//
// # Rules
//
//   - Piece f of k over n elements is [floor(n*f/k), floor(n*(f+1)/k)). The pieces follow each other without a gap,
//     their lengths differ by at most one, and any n goes with any k.
//   - Results that are per rank (reduce-scatter, all-gather) hold ceil(n/ranks) elements on every rank, see [PerRank].
//     Their pieces are cut from that padded length and clipped at n, see [SplitPadded], so that with m pieces per rank
//     the pieces r*m to (r+1)*m-1 are exactly rank r's shard.
//   - Concat sorts by (Offset, Index). Chunks may be empty. It copies: nothing it is given is changed or kept.
package chunks
