package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// sample is one line of the raw file.
type sample struct {
	who        string // ours, peer, floor
	round      int
	latency    float64 // nanoseconds, 0: not known
	collective string  // gclperf's name
	bytes      int
	config     string // of a peer: shm+thp, shm+thp:a3
	micro      float64
}

// read reads the raw file of a measurement with n replicas.
func read(r io.Reader, n int) ([]sample, error) {
	var out []sample
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		s, err := parse(strings.Split(lines.Text(), ","), n)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w: %s", number, err, lines.Text())
		}
		if s.who != "" {
			out = append(out, s)
		}
	}
	return out, lines.Err()
}

// parse reads a line. What is of no use, such as the floor in place, gives a sample of nobody.
func parse(f []string, n int) (s sample, err error) {
	if len(f) < 4 {
		return s, errors.New("too short")
	}
	round, err1 := strconv.Atoi(f[1])
	latency, err2 := strconv.ParseFloat(f[2], 64)
	s = sample{who: f[0], round: round, latency: latency}
	f = f[3:]
	var size, micro, replicas string
	switch {
	case s.who == "ours" && len(f) == 18:
		s.collective, replicas, size, micro = f[0], f[4], f[5], f[11]
		if w := f[16]; w != "0" {
			return s, fmt.Errorf("%s wrong values", w)
		}
	case s.who == "peer" && len(f) == 13:
		s.config = strings.TrimPrefix(f[0], "openmpi-")
		s.collective, replicas, size, micro = f[2], f[1], f[5], f[8]
		if s.collective == "bcast" {
			s.collective = "broadcast"
		}
	case s.who == "floor" && len(f) == 10:
		s.collective, replicas, size, micro = "allreduce", f[1], f[2], f[6]
		s.config = f[3]
	default:
		return s, errors.New("neither ours, a peer's nor the floor's")
	}
	var err3, err4 error
	s.bytes, err3 = strconv.Atoi(size)
	s.micro, err4 = strconv.ParseFloat(micro, 64)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return s, err
	}
	if !(s.micro > 0) || replicas != strconv.Itoa(n) {
		return s, errors.New("not a time, or of another number of replicas")
	}
	return s, nil
}
