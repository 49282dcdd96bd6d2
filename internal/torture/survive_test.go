package main

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
)

// TestSurvive: jobs whose replicas are killed go on. The seeds are of one that loses replica 0, of one where others
// come in place of several, and of one that is stopped.
func TestSurvive(t *testing.T) {
	onLinux(t)
	s := surviving{steps: surviveSteps, processes: 4}
	seeds := map[string]string{}
	for seed := uint64(1); len(seeds) < 3; seed++ {
		switch o, e := s.plan(seed); {
		case e.stop:
			seeds["stopped"] = strconv.FormatUint(seed, 10)
		case len(e.victims) > 1 && o.Comers > 0:
			seeds["several"] = strconv.FormatUint(seed, 10)
		case e.victims[0] == 0:
			seeds["first"] = strconv.FormatUint(seed, 10)
		}
	}
	for what, seed := range seeds {
		var stdout, stderr bytes.Buffer
		args := []string{"survive", "-runs", "1", "-seed", seed, "-n", "4"}
		if code := run(t.Context(), args, &stdout, &stderr); code != command.OK ||
			!strings.HasPrefix(stdout.String(), "1 jobs went on, 0 wrong") {
			t.Errorf("%s, seed %s: exit code %d\n%s%s", what, seed, code, &stdout, &stderr)
		}
	}
}

// TestJudgeSurvivors: what is wrong with the end of a job is found.
func TestJudgeSurvivors(t *testing.T) {
	good := func(r int) *process {
		return &process{rank: r, report: &report{Survived: &survived{Steps: 5, State: 7, Members: []int{0, 2}}}}
	}
	behind := &process{report: &report{Error: "left", Survived: &survived{LeftBehind: true}}}
	dead := ends{victims: []int{1}}
	for name, test := range map[string]struct {
		change func(all []*process)
		e      ends
		want   string
	}{
		"right":                {func([]*process) {}, dead, ""},
		"right, and stopped":   {func(all []*process) { all[1] = behind }, ends{victims: []int{1}, stop: true}, ""},
		"stopped, and is in":   {func(all []*process) { all[1] = good(1) }, ends{victims: []int{1}, stop: true}, "left behind"},
		"an error":             {func(all []*process) { all[2].report.Error = "no" }, dead, "replica 2: no"},
		"no report":            {func(all []*process) { all[0].report = nil }, dead, "replica 0: "},
		"with the victim":      {func(all []*process) { all[2].report.Survived.Members = []int{0, 1, 2} }, dead, "gone on with"},
		"another state":        {func(all []*process) { all[2].report.Survived.State++ }, dead, "has done 5 steps to 0x7"},
		"another step":         {func(all []*process) { all[2].report.Survived.Steps++ }, dead, "and replica 2 6"},
		"a victim's own error": {func(all []*process) { all[1].report = &report{Error: "no"} }, dead, "to be killed: no"},
	} {
		all := []*process{good(0), {rank: 1}, good(2)}
		test.change(all)
		got := judgeSurvivors(all, nil, test.e)
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	// Another has come in the place of the victim.
	for name, members := range map[string][]int{"": {0, 2, 3}, "once more": {0, 2, 5},
		"has gone on with [0 2], want [0 2 3]": {0, 2}, "has gone on with [0 3 4], want [0 2 3]": {0, 3, 4}} {
		want := strings.TrimPrefix(name, "once more")
		all := []*process{good(0), {rank: 1}, good(2), good(1)}
		for _, p := range all {
			if p.report != nil {
				p.report.Survived.Members = members
			}
		}
		got := judgeSurvivors(all[:3], all[3:], dead)
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("one that has come, with %v: %q, want %q", members, got, want)
		}
	}
}
