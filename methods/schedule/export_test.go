package schedule

// ExamineExactly is Examine by sets of contributors.
func ExamineExactly(s *Schedule) (Report, error) {
	e := examination{schedule: s, reports: true}
	if err := e.form(); err != nil {
		return Report{}, err
	}
	r, err := e.twice(s, s.Again || s.Collective.Contract().Again, true)
	return r, e.traced(s, err)
}

// ExamineSums is Examine by sums of contributors alone, however few ranks there are. Its errors are not those of Check.
func ExamineSums(s *Schedule) (Report, error) {
	e := examination{schedule: s, reports: true}
	if err := e.form(); err != nil {
		return Report{}, err
	}
	return e.twice(s, false, false)
}

// CheckSumsFirst is Check as it is for more than 64 ranks.
func CheckSumsFirst(s *Schedule) error {
	e := examination{schedule: s, sums: true}
	if err := e.form(); err != nil {
		return err
	}
	_, err := e.examine(s)
	return err
}

// Moved is one message of a Builder.
type Moved struct {
	Round, From, To, First, N int
	Fold                      bool
}

// Messages lists the messages of a Builder, with the rounds that they go in.
func Messages(b *Builder) []Moved {
	var out []Moved
	for _, m := range b.moves {
		out = append(out, Moved{m.round, m.from, m.to, m.first, m.n, m.fold})
	}
	return out
}

// ExamineIn carries out a schedule with so many bytes of room, and returns how many bytes were noted as taken.
func ExamineIn(s *Schedule, bytes int64) (noted int64, err error) {
	e := examination{schedule: s, reports: true, budget: bytes - budgetStepBytes*s.steps()}
	if err := e.form(); err != nil {
		return 0, err
	}
	terms, err := e.newTerms(s, s.Again, s.Again || s.Size <= exactRanks)
	if err != nil {
		return 0, err
	}
	m := e.newMachine(terms, false)
	var r Report
	r.Size, r.Chunks = s.Size, s.Chunks
	m.tally = newTally(&r)
	if m.err == nil {
		run(s, s.Size, []*machine{m})
	}
	return terms.budget.all - terms.budget.left, m.err
}

// CheckIn is Check with so many bytes of room.
func CheckIn(s *Schedule, bytes int64) error {
	e := examination{schedule: s, budget: bytes - budgetStepBytes*s.steps()}
	if err := e.form(); err != nil {
		return err
	}
	_, err := e.examine(s)
	return err
}

// Customs are schedules of contracts of a program's own, which Check accepts.
var Customs = customs
