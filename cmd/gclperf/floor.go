package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// floorPoint is a line of bench/peers/arlimit.c: the time of an all-reduce of float32 among n buffers by pinned
// threads of one address space.
type floorPoint struct {
	n, bytes, threads int
	place             string
	micro             float64
}

// parseFloor reads arlimit's CSV: arlimit,n,bytes,place,store,threads,median,least,algbw,busbw.
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
		threads, err3 := strconv.Atoi(f[5])
		micro, err4 := strconv.ParseFloat(f[6], 64)
		if err := errors.Join(err1, err2, err3, err4); err != nil || n < 1 || size < 1 || threads < 1 || !(micro > 0) {
			return nil, fmt.Errorf("line %d: %q has a number that cannot be", i+1, line)
		}
		out = append(out, floorPoint{n: n, bytes: size, threads: threads, place: f[3], micro: micro})
	}
	if out == nil {
		return nil, errors.New("there is no line of arlimit in it")
	}
	return out, nil
}

// lowest is the fastest point of each size that is known for n replicas in one place, by whichever stores.
func lowest(all []floorPoint, n int, place string) map[int]floorPoint {
	out := map[int]floorPoint{}
	for _, p := range all {
		if p.n != n || p.place != place {
			continue
		}
		if have, ok := out[p.bytes]; !ok || p.micro < have.micro {
			out[p.bytes] = p
		}
	}
	return out
}
