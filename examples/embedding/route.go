package main

import "math/rand/v2"

// router says which rows a replica asks of which others, and where it finds them in what comes back.
type router struct {
	replicas int
	capacity int // places for each pair of replicas

	asked []int32 // by row: which question it was asked in last
	place []int32 // by row: where, in that question
	used  []int   // by replica: places taken
	now   int32   // the question
}

func newRouter(words, replicas int) *router {
	return &router{replicas: replicas, asked: make([]int32, words), place: make([]int32, words), used: make([]int, replicas)}
}

// count is the most places that a question about words needs of one replica.
func (r *router) count(words []int32) (most int) {
	r.ask(words, nil, nil)
	for _, n := range r.used {
		most = max(most, n)
	}
	return most
}

// ask fills in, for each replica in turn, the rows wanted of it as it numbers them, and the places of the words in what
// comes back: (replicas, capacity), one after the other. Places left over are left as they are.
func (r *router) ask(words []int32, want, places []uint32) {
	r.now++
	clear(r.used)
	for i, w := range words {
		owner, row := owner(int(w), r.replicas)
		if r.asked[w] != r.now {
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
}

// owner is the replica that has a word's row, and which of its rows that is.
func owner(word, replicas int) (replica, row int) { return word % replicas, word / replicas }

// shardRows is how many rows each replica has, of which the last may be of no word.
func shardRows(words, replicas int) int { return (words + replicas - 1) / replicas }

// orders are the orders in which the words are learnt from, one for each pass: the same for the same seed.
type orders struct {
	random *rand.Rand
	places int
}

const (
	orderStream = iota // of random numbers
	tableStream
)

func newOrders(seed uint64, places int) *orders {
	return &orders{rand.New(rand.NewPCG(seed, orderStream)), places}
}

// next is the places of the next pass.
func (o *orders) next() []int {
	order := o.random.Perm(o.places)
	for i := range order {
		order[i] += reach
	}
	return order
}

// wordsAround appends the words around a place.
func wordsAround(to, words []int32, place int) []int32 {
	for _, d := range around {
		to = append(to, words[place+d])
	}
	return to
}

// capacity is the most places that any step of the run needs for a pair of replicas.
func (cfg config) capacity(b *book) int {
	r, most := newRouter(len(b.words), cfg.replicas), 0
	o := newOrders(cfg.seed, b.places())
	var words []int32
	for range cfg.epochs {
		order, part := o.next(), cfg.part()
		for len(order) >= cfg.batch {
			for k := range cfg.replicas {
				words = words[:0]
				for _, place := range order[k*part : (k+1)*part] {
					words = wordsAround(words, b.train, place)
				}
				most = max(most, r.count(words))
			}
			order = order[cfg.batch:]
		}
	}
	return most
}

// part is how many words a replica guesses in a step.
func (cfg config) part() int { return cfg.batch / cfg.replicas }
