package schedule

// ExamineExactly is Examine by sets of contributors.
func ExamineExactly(s *Schedule) (Report, error) {
	e := examination{schedule: s, reports: true}
	if err := e.form(); err != nil {
		return Report{}, err
	}
	return e.twice(s, s.Again || s.Collective.Contract().Again, true)
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

// Customs are schedules of contracts of a program's own, which Check accepts.
var Customs = customs
