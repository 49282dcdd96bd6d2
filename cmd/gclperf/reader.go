package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
)

// reader takes measurements from what -csv prints. Other lines, of libraries, go to rest.
type reader struct {
	take func(measurement) error
	rest io.Writer
	line []byte // the beginning of one
	err  error  // of take
}

func (r *reader) Write(p []byte) (int, error) {
	r.line = append(r.line, p...)
	for {
		line, rest, whole := bytes.Cut(r.line, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		r.line = rest
		fields, err := csv.NewReader(bytes.NewReader(line)).Read()
		if err == nil && slices.Equal(fields, fieldNames()) {
			continue
		}
		m, ok := parseMeasurement(fields)
		if !ok {
			if _, err := fmt.Fprintf(r.rest, "%s\n", line); err != nil {
				return 0, err
			}
			continue
		}
		if r.err = r.take(m); r.err != nil {
			return 0, r.err
		}
	}
}

// parseMeasurement reads a line of CSV.
func parseMeasurement(line []string) (m measurement, ok bool) {
	all := fields()
	if len(line) != len(all) {
		return m, false
	}
	v := reflect.ValueOf(&m).Elem()
	for i, field := range all {
		switch f := v.FieldByIndex(field.Index); {
		case f.CanInt():
			n, err := strconv.ParseInt(line[i], 10, 64)
			if err != nil {
				return m, false
			}
			f.SetInt(n)
		case f.CanFloat():
			n, err := strconv.ParseFloat(line[i], 64)
			if err != nil {
				return m, false
			}
			f.SetFloat(n)
		default:
			f.SetString(line[i])
		}
	}
	return m, true
}
