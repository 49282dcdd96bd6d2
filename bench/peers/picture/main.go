// Command picture draws what bench/peers.sh -o has written: the time of a collective by the library and by its peer
// against size, a panel for each number of replicas.
//
//	picture -o docs/peers.svg peers2.csv peers4.csv
package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/measure"
	"gogcl.dev/internal/plot"
)

func main() { command.Main("picture", run) }

// settings are the command line.
type settings struct {
	collective, peer, out string
	in                    []string
}

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parseFlags(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return command.OK
	case err != nil:
		return command.Mistake("picture", err, stderr)
	}
	if err := s.draw(stdout); err != nil {
		return command.Ended(ctx, "picture", err, stderr)
	}
	return command.OK
}

// parseFlags reads the command line.
func parseFlags(args []string, stdout io.Writer) (settings, error) {
	var s settings
	f := flag.NewFlagSet("picture", flag.ContinueOnError)
	f.StringVar(&s.collective, "c", "allreduce", "the `collective` to draw")
	f.StringVar(&s.peer, "peer", "best tuned Open MPI", "`name` of the peer in the legend")
	f.StringVar(&s.out, "o", "", "`file` to draw into, - is standard output; must be given")
	const does = "Draws what bench/peers.sh -o has written."
	if err := command.ParseArguments(f, args, stdout, "-o FILE table.csv...", does); err != nil {
		return s, err
	}
	if s.in = f.Args(); s.out == "" || len(s.in) == 0 {
		return s, fmt.Errorf("want -o FILE, and a table of bench/peers.sh -o for each number of replicas: have -o %q and "+
			"the tables %q", s.out, s.in)
	}
	return s, nil
}

// draw makes the picture.
func (s settings) draw(stdout io.Writer) error {
	o := measure.NewOrigin("", time.Now())
	fig := &plot.Figure{Title: s.collective + " of float32 on one host: goroutines, and processes of the peer over shared memory",
		Foot: fmt.Sprintf("bench/peers.sh, gogcl %s, %s, %s, %d cores", o.Version, o.Date, o.Machine, o.Cores),
		Rows: [][]plot.Panel{nil}}
	for _, name := range s.in {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		panel, err := s.panel(bytes.NewReader(text))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fig.Rows[0] = append(fig.Rows[0], panel)
	}
	var b bytes.Buffer
	if err := fig.Write(&b); err != nil {
		return err
	}
	if s.out == "-" {
		_, err := b.WriteTo(stdout)
		return err
	}
	return os.WriteFile(s.out, b.Bytes(), 0o644)
}

// panel reads a table and makes the panel of its number of replicas.
func (s settings) panel(r io.Reader) (plot.Panel, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return plot.Panel{}, err
	}
	ours, peer := plot.Line{Name: "gogcl, auto"}, plot.Line{Name: s.peer, Reference: true}
	n := ""
	if len(rows) > 0 {
		at := func(column string) int { return slices.Index(rows[0], column) }
		columns := []int{at("collective"), at("n"), at("bytes"), at("ours_us"), at("peer_us")}
		if slices.Contains(columns, -1) {
			return plot.Panel{}, errors.New("no table of bench/peers.sh -o")
		}
		for i, row := range rows[1:] {
			if row[columns[0]] != s.collective || row[columns[4]] == "" {
				continue
			}
			n = row[columns[1]]
			var v [3]float64
			for k, c := range columns[2:] {
				if v[k], err = strconv.ParseFloat(row[c], 64); err != nil {
					return plot.Panel{}, fmt.Errorf("line %d: %w", i+2, err)
				}
			}
			ours.Points = append(ours.Points, plot.Point{X: v[0], Y: v[1]})
			peer.Points = append(peer.Points, plot.Point{X: v[0], Y: v[2]})
		}
	}
	if n == "" {
		return plot.Panel{}, fmt.Errorf("no line of %s with a time of the peer", s.collective)
	}
	return plot.Panel{
		Title: n + " replicas",
		X: plot.Axis{Label: "size (bytes)", Base: 2,
			Tick: func(v float64) string { return measure.FormatSize(int(v)) }},
		Y:     plot.Axis{Label: "time of a call", Base: 10, Tick: plot.Micro},
		Lines: []plot.Line{ours, peer},
	}, nil
}
