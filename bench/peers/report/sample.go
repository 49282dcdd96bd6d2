package main

import (
	"encoding/csv"
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
	// config is how a peer ran: shm+thp, shm+thp:a3. Of ours it is the transport, and of the floor memoryFloor or the
	// kind of socket. Over MPI it is the method of ours, and else nonblocking, blocking or floor.
	config string
	micro  float64 // of calls on the same inputs again and again, 0: not in the line
	dirty  float64 // of calls before each of which all inputs were rewritten, 0: not in the line
}

// memoryFloor is the config of the floor of threads in one address space.
const memoryFloor = "memory"

// floorOf is the config of the floor of a transport of ours.
func floorOf(transport string) string {
	if transport == "inproc" || transport == "shm" {
		return memoryFloor
	}
	return transport
}

// read reads the raw file of a measurement with n replicas.
func read(r io.Reader, n int) ([]sample, error) {
	var out []sample
	lines := csv.NewReader(r)
	lines.FieldsPerRecord = -1 // each program that is measured has columns of its own
	for {
		line, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err // has the line's number
		}
		number, _ := lines.FieldPos(0)
		s, err := parse(line, n)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w: %s", number, err, strings.Join(line, ","))
		}
		if s.who != "" {
			out = append(out, s)
		}
	}
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
	var size, micro, dirty, replicas string
	switch {
	case s.who == "ours" && len(f) >= 18: // gclperf's columns; what is behind the 20th says where it ran
		s.collective, s.config, replicas, size, micro = f[0], f[1], f[4], f[5], f[11]
		if w := f[16]; w != "0" {
			return s, fmt.Errorf("%s wrong values", w)
		}
		if len(f) > 19 && f[19] != "-1" { // without -dirty
			dirty = f[19]
		}
		if s.config == "mpi" {
			s.config = f[3]
		}
	case (s.who == "peer" || s.who == "ours" || s.who == "floor") && len(f) == 13:
		s.config = strings.TrimPrefix(f[0], "openmpi-")
		s.collective, replicas, size, micro = f[2], f[1], f[5], f[8]
		if f[6] == "dirty" {
			micro, dirty = "", micro
		}
		if s.collective == "bcast" {
			s.collective = "broadcast"
		}
	case s.who == "floor" && len(f) == 10:
		s.collective, s.config, replicas, size, micro = "allreduce", memoryFloor, f[1], f[2], f[6]
	case s.who == "floor" && len(f) == 5:
		s.config, replicas, s.collective, size, micro = f[0], f[1], f[2], f[3], f[4]
	default:
		return s, errors.New("neither ours, a peer's nor the floor's")
	}
	var err3, err4 error
	s.bytes, err3 = strconv.Atoi(size)
	known := false
	for _, of := range []struct {
		text string
		to   *float64
	}{{micro, &s.micro}, {dirty, &s.dirty}} {
		if of.text == "" {
			continue
		}
		var err error
		*of.to, err = strconv.ParseFloat(of.text, 64)
		known = known || *of.to > 0
		if err == nil && !(*of.to > 0) {
			err = errors.New("not a time")
		}
		err4 = errors.Join(err4, err)
	}
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return s, err
	}
	if !known || replicas != strconv.Itoa(n) {
		return s, errors.New("not a time, or of another number of replicas")
	}
	return s, nil
}
