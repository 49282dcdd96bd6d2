package methods

import (
	"hash/maphash"

	"gogcl.dev/methods/schedule"
)

// fingerprints tells schedules apart: equal ones have the same fingerprint, and others, but for one chance in 2^64,
// have another.
var fingerprints = maphash.MakeSeed()

func fingerprint(s *schedule.Schedule) uint64 {
	var h maphash.Hash
	h.SetSeed(fingerprints)
	maphash.WriteComparable(&h, [5]int{int(s.Collective), s.Size, s.Root, s.Chunks, len(s.Programs)})
	maphash.WriteComparable(&h, s.Apart)
	for _, p := range s.Programs {
		maphash.WriteComparable(&h, len(p))
		for _, r := range p {
			maphash.WriteComparable(&h, [2]int{len(r.Moves), len(r.Then)})
			for _, st := range r.Moves {
				maphash.WriteComparable(&h, st)
			}
			for _, st := range r.Then {
				maphash.WriteComparable(&h, st)
			}
		}
	}
	return h.Sum64()
}
