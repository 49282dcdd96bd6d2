package gcl

import "gogcl.dev/gcl/internal/route"

// newSetting is what options, group and transport say of how the Comm's calls go.
func (c *Comm) newSetting() route.Setting {
	s := route.Setting{
		Asked: c.options.Method, Implementation: route.Implementation(c.options.Implementation), Reproducible: c.options.Reproducible,
		Tuning: c.tuning(), Tuned: c.options.MaxBroadcastSize != 0,
		Ranks: c.Size(), Strided: c.strided,
		Phased: phasedCollectives(),
		Memory: c.lane.memory != nil && c.lane.memory.Reaches(c.group.members), Small: -1,
	}
	if b := c.lane.boards; b != nil && b.Reaches(c.group.members) {
		s.Small = min(b.SmallLimit(), c.tile)
	}
	if split := c.group.split; split != nil {
		s.Domains, s.Each = split.domains, split.each
	}
	s.Syncful, s.SyncfulWhy = s.Together()
	return s
}
