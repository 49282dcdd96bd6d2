package main

import (
	"fmt"
	"math/rand/v2"
)

// router says which rows a replica asks of which others, and where it finds them in what comes back.
type router struct {
	replicas int
	capacity int // places for each pair of replicas

	asked []int64 // by row: which question it was asked in last
	place []int32 // by row: where, in that question
	used  []int   // by replica: places taken
	now   int64   // the question
}

func newRouter(words, replicas int) *router {
	return &router{replicas: replicas, asked: make([]int64, words), place: make([]int32, words),
		used: make([]int, replicas)}
}

// count is the most places that a question about words needs of one replica.
func (r *router) count(words []int32) (most int) {
	_ = r.ask(words, nil, nil) // counts without limit
	for _, n := range r.used {
		most = max(most, n)
	}
	return most
}

// ask fills in, for each replica in turn, the rows wanted of it as it numbers them, and the places of the words in what
// comes back: (replicas, capacity), one after the other. Places left over are left as they are. Without
// want it only counts. Errors: more rows of one replica than it has places.
func (r *router) ask(words []int32, want, places []uint32) error {
	r.now++
	clear(r.used)
	for i, w := range words {
		owner, row := owner(int(w), r.replicas)
		if r.asked[w] != r.now {
			if want != nil && r.used[owner] == r.capacity {
				return fmt.Errorf("replica %d is asked for more rows than its capacity of %d", owner, r.capacity)
			}
			r.asked[w], r.place[w] = r.now, int32(owner*r.capacity+r.used[owner])
			if want != nil {
				want[r.place[w]] = uint32(row)
			}
			r.used[owner]++
		}
		if places != nil {
			places[i] = uint32(r.place[w])
		}
	}
	return nil
}

// owner is the replica that has a word's row, and which of its rows that is.
func owner(word, replicas int) (replica, row int) { return word % replicas, word / replicas }

// shardRows is how many rows each replica has, of which the last may be of no word.
func shardRows(words, replicas int) int { return (words + replicas - 1) / replicas }

// Two streams of random numbers from one seed.
const (
	orderStream = iota // which words are in which batch, and the order of the batches
	tableStream        // what is learnt from
)

// batches are the words that are learnt from together, by their places in the book: the same ones in every pass, so
// that one look at them says how many rows a step needs at most, in a new order in each. What is left over is not
// learnt from.
type batches struct {
	random *rand.Rand
	list   [][]int
}

// newBatches makes batches of so many words: the same for the same seed.
func newBatches(seed uint64, b *book, size int) *batches {
	all := &batches{random: rand.New(rand.NewPCG(seed, orderStream))}
	order := all.random.Perm(b.places())
	for i := range order {
		order[i] += reach
	}
	for ; len(order) >= size; order = order[size:] {
		all.list = append(all.list, order[:size:size])
	}
	return all
}

// next is the batches of the next pass; the list is theirs.
func (b *batches) next() [][]int {
	b.random.Shuffle(len(b.list), func(i, j int) { b.list[i], b.list[j] = b.list[j], b.list[i] })
	return b.list
}

// wordsAround appends the words around a place.
func wordsAround(to, words []int32, place int) []int32 {
	for _, d := range around {
		to = append(to, words[place+d])
	}
	return to
}

// capacity is the most places that any step needs for a pair of replicas.
func (cfg config) capacity(b *book) int {
	r, most, part := newRouter(len(b.words), cfg.replicas), 0, cfg.part()
	var words []int32
	for _, batch := range newBatches(cfg.seed, b, cfg.batch).list {
		for ; len(batch) > 0; batch = batch[part:] {
			words = words[:0]
			for _, place := range batch[:part] {
				words = wordsAround(words, b.train, place)
			}
			most = max(most, r.count(words))
		}
	}
	return most
}

// part is how many words a replica guesses in a step.
func (cfg config) part() int { return cfg.batch / cfg.replicas }
