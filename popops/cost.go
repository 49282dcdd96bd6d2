package popops

// choose says how calls of n look-ups are carried out by so many workers at most.
func (p *Plan) choose(n, workers int) choice {
	return choice{slice: how{workers: workers, by: byLookUps}, update: how{workers: workers, by: byRows}}
}

// choice is how the calls of a number of look-ups are carried out.
type choice struct{ slice, update how }
