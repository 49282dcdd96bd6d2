package wire

// FNV is the 64-bit FNV-1a hash of a list of numbers.
func FNV(hash uint64, numbers ...int) uint64 {
	for _, n := range numbers {
		for shift := 0; shift < 64; shift += 8 {
			hash = (hash ^ uint64(n)>>shift&0xff) * 0x100000001b3
		}
	}
	return hash
}

// FNVOffset is where FNV-1a begins.
const FNVOffset = 0xcbf29ce484222325

// Seed is where Mix begins.
const Seed = FNVOffset

// Mix adds a number to a hash, a word at a time, where FNV takes it byte by byte: a call on many tensors has hundreds
// of numbers. Two hashes that differ in one number differ.
func Mix(hash, n uint64) uint64 {
	hash = (hash ^ n) * 0x9e3779b97f4a7c15 // odd, 2^64 by the golden ratio (Knuth, volume 3, 6.4)
	return hash ^ hash>>32
}
