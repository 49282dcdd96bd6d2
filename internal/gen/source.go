package main

import "math/rand/v2"

// mix makes a number of numbers: a hash that spreads each bit. Seeds and data come from it, so a program is the same
// in every process.
func mix(parts ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, p := range parts {
		h ^= p
		h += 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

// source is a source of random numbers that is another one for other parts.
func source(parts ...uint64) *rand.Rand {
	h := mix(parts...)
	return rand.New(rand.NewPCG(h, mix(h)))
}

// pick draws one of the values.
func pick[T any](r *rand.Rand, s ...T) T { return s[r.IntN(len(s))] }
