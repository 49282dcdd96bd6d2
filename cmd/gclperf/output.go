package main

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strconv"
)

// output takes measurements, those of one size one after the other, and prints them.
type output interface {
	add(measurement) error
	end() error // after the last one, also after an error
}

// newOutput makes an output. With headed what the file begins with is there already.
func newOutput(s *settings, as format, w io.Writer, headed bool) output {
	switch as {
	case asJSON:
		return &jsonOutput{to: w}
	case asJSONLines:
		return linesOutput{json.NewEncoder(w)}
	case asCSV:
		return &csvOutput{to: csv.NewWriter(w), headed: headed}
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

// linesOutput prints an object on each line, at once.
type linesOutput struct{ to *json.Encoder }

func (o linesOutput) add(m measurement) error { return o.to.Encode(m) }
func (o linesOutput) end() error              { return nil }

// fields are those of a measurement, in the order of the columns of CSV.
func fields() []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(reflect.TypeFor[measurement]()),
		func(f reflect.StructField) bool { return f.Anonymous })
}

// fieldNames are the columns of CSV.
func fieldNames() (names []string) {
	for _, f := range fields() {
		names = append(names, f.Tag.Get("json"))
	}
	return names
}

// csvOutput prints a header and a line for each measurement, at once.
type csvOutput struct {
	to     *csv.Writer
	headed bool
}

func (o *csvOutput) add(m measurement) error {
	v := reflect.ValueOf(m)
	var line []string
	for _, field := range fields() {
		switch f := v.FieldByIndex(field.Index); {
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
		if err := o.to.Write(fieldNames()); err != nil {
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
