package main

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"reflect"
	"strconv"
)

// output takes measurements, those of one size one after the other, and prints them.
type output interface {
	add(measurement) error
	end() error // after the last one, also after an error
}

func newOutput(s *settings, w io.Writer) output {
	switch s.format {
	case asJSON:
		return &jsonOutput{to: w}
	case asCSV:
		return &csvOutput{to: csv.NewWriter(w)}
	}
	return &table{to: w, settings: s}
}

// jsonOutput prints one array in the end, so that it is whole even after an interrupt.
type jsonOutput struct {
	to  io.Writer
	all []measurement
}

func (o *jsonOutput) add(m measurement) error {
	o.all = append(o.all, m)
	return nil
}

func (o *jsonOutput) end() error {
	if o.all == nil {
		o.all = []measurement{}
	}
	e := json.NewEncoder(o.to)
	e.SetIndent("", "  ")
	return e.Encode(o.all)
}

// csvOutput prints a header and a line for each measurement, at once.
type csvOutput struct {
	to     *csv.Writer
	headed bool
}

func (o *csvOutput) add(m measurement) error {
	v := reflect.ValueOf(m)
	var names, line []string
	for i := range v.NumField() {
		names = append(names, v.Type().Field(i).Tag.Get("json"))
		switch f := v.Field(i); {
		case f.CanInt():
			line = append(line, strconv.FormatInt(f.Int(), 10))
		case f.CanFloat():
			line = append(line, strconv.FormatFloat(f.Float(), 'f', -1, 64))
		default:
			line = append(line, f.String())
		}
	}
	if !o.headed {
		o.headed = true
		if err := o.to.Write(names); err != nil {
			return err
		}
	}
	if err := o.to.Write(line); err != nil {
		return err
	}
	return o.end()
}

func (o *csvOutput) end() error {
	o.to.Flush()
	return o.to.Error()
}
