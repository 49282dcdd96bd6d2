package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// floorPoint is a line of bench/peers/arlimit.c: what two pinned threads need for an all-reduce of float32 among n
// buffers.
type floorPoint struct {
	n, bytes int
	place    string
	micro    float64
}

// parseFloor reads arlimit's CSV: arlimit,n,bytes,place,store,pages,median,least,algbw,busbw.
func parseFloor(text string) ([]floorPoint, error) {
	var out []floorPoint
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		f := strings.Split(line, ",")
		if len(f) != 10 || f[0] != "arlimit" {
			return nil, fmt.Errorf("line %d: %q is not a line of arlimit", i+1, line)
		}
		n, err1 := strconv.Atoi(f[1])
		size, err2 := strconv.Atoi(f[2])
		micro, err3 := strconv.ParseFloat(f[6], 64)
		if err := errors.Join(err1, err2, err3); err != nil || n < 1 || size < 1 || !(micro > 0) {
			return nil, fmt.Errorf("line %d: %q has a number that cannot be", i+1, line)
		}
		out = append(out, floorPoint{n: n, bytes: size, place: f[3], micro: micro})
	}
	if out == nil {
		return nil, errors.New("there is no line of arlimit in it")
	}
	return out, nil
}

// lowest is the least time for each size that is known for n replicas in one place, by whichever stores and pages.
func lowest(all []floorPoint, n int, place string) map[int]float64 {
	out := map[int]float64{}
	for _, p := range all {
		if p.n != n || p.place != place {
			continue
		}
		if have, ok := out[p.bytes]; !ok || p.micro < have {
			out[p.bytes] = p.micro
		}
	}
	return out
}
