package methods

import "gogcl.dev/methods/schedule"

// Examine is [schedule.Examine] of the schedule that Build makes. It makes the programs one after the other and keeps
// them packed, in a third of the memory. Errors are those of Build and of schedule.Examine.
func Examine(s Spec) (schedule.Report, error) {
	if err := s.check(); err != nil {
		return schedule.Report{}, err
	}
	if w, _ := s.recipe(); w.proved != nil {
		made, err := w.proved(s)
		if err != nil {
			return schedule.Report{}, err
		}
		return made.Report, nil
	}
	return schedule.ExamineByRank(s.header(), func(rank int) (schedule.Program, error) { return s.program(rank), nil })
}

// header is the schedule without its programs.
func (s Spec) header() *schedule.Schedule {
	return &schedule.Schedule{
		Collective: s.Collective,
		Size:       s.Size,
		Root:       s.Root,
		Chunks:     s.chunks(),
		Apart:      s.Collective.Contract().Output == schedule.Blocks && !s.InPlace,
	}
}
