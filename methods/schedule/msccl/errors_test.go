package msccl_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/methods/schedule/msccl"
)

// full is a writer that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// TestWriteErrors: nothing is written but what the format has and the checker takes.
func TestWriteErrors(t *testing.T) {
	t.Parallel()
	build := func(c schedule.Collective) *schedule.Schedule {
		s, err := methods.Build(methods.Spec{Method: methods.Direct, Collective: c, Size: 2})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	good := build(schedule.AllReduce)
	wrong := build(schedule.AllReduce)
	wrong.Programs[1] = nil
	again := build(schedule.AllReduce)
	again.Again = true
	long := &schedule.Schedule{Collective: schedule.AllReduce, Size: 1, Chunks: 1<<15 + 1, Programs: []schedule.Program{
		{{Then: []schedule.Step{{Verb: schedule.Copy, Peer: -1, Src: schedule.In(0, 1<<15+1), Dst: schedule.Out(0, 1<<15+1)}}}}}}
	// Three slots that are each as long as half of all chunks: more than the format has numbers for.
	slots := &schedule.Schedule{Collective: schedule.AllReduce, Size: 1, Chunks: 1 << 14}
	slots.Programs = []schedule.Program{{{
		Then: []schedule.Step{
			{Verb: schedule.Copy, Peer: -1, Src: schedule.In(0, 1<<14), Dst: schedule.Tmp(0, 0, 1<<14)},
			{Verb: schedule.Copy, Peer: -1, Src: schedule.Tmp(0, 0, 1<<14), Dst: schedule.Tmp(1, 0, 1<<14)},
			{Verb: schedule.Copy, Peer: -1, Src: schedule.Tmp(1, 0, 1<<14), Dst: schedule.Tmp(2, 0, 1<<14)},
			{Verb: schedule.Copy, Peer: -1, Src: schedule.Tmp(2, 0, 1<<14), Dst: schedule.Out(0, 1<<14)},
		}}}}
	for _, c := range []struct {
		f    *msccl.File
		want string
		is   error
	}{
		{nil, "msccl: no schedule to write", nil},
		{&msccl.File{}, "msccl: no schedule to write", nil},
		{&msccl.File{Schedule: build(schedule.Broadcast)}, "msccl: the format has no broadcast: ", errors.ErrUnsupported},
		{&msccl.File{Schedule: again}, "msccl: the format has no contributions that count again: ", errors.ErrUnsupported},
		{&msccl.File{Schedule: good, Protocol: "simple"}, `msccl: protocol "simple", want one of [Simple LL LL128]`, nil},
		{&msccl.File{Schedule: good, MinBytes: 2, MaxBytes: 1}, "msccl: 2 to 1 bytes, want a range", nil},
		{&msccl.File{Schedule: good, MinBytes: -1}, "msccl: -1 to 34359738368 bytes, want a range", nil},
		{&msccl.File{Schedule: wrong}, "msccl: only what is proved is written: schedule: rank 0 round 0 ", nil},
		{&msccl.File{Schedule: long}, "msccl: 32769 chunks, want at most 32768", nil},
		{&msccl.File{Schedule: slots}, "msccl: rank 0 has 49152 chunks of scratch, want at most 32768", nil},
	} {
		var b strings.Builder
		if err := msccl.Write(&b, c.f); err == nil || !strings.HasPrefix(err.Error(), c.want) || b.Len() > 0 ||
			c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("error %v, want %s; %d bytes written", err, c.want, b.Len())
		}
	}
	if err := msccl.Write(full{}, &msccl.File{Schedule: good}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a writer that takes nothing: %v", err)
	}
	if err := msccl.Write(nil, &msccl.File{Schedule: good}); err == nil {
		t.Error("no writer: no error")
	}
}

// TestNames writes names that XML has other letters for, and reads them back.
func TestNames(t *testing.T) {
	t.Parallel()
	s, err := methods.Build(methods.Spec{Method: methods.Direct, Collective: schedule.AllGather, Size: 2})
	if err != nil {
		t.Fatal(err)
	}
	want := msccl.File{Name: "a\"<&> b", Protocol: "LL", MinBytes: 8, MaxBytes: 16}
	f := want
	f.Schedule = s
	var b strings.Builder
	if err := msccl.Write(&b, &f); err != nil {
		t.Fatal(err)
	}
	got, err := msccl.Read([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	got.Schedule = nil
	if *got != want {
		t.Errorf("read %+v, wrote %+v", got, want)
	}
}

// TestManyChunks has steps that name more chunks than a file of this length may.
func TestManyChunks(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`<algo name="a" proto="LL" nchannels="1" nchunksperloop="32768" ngpus="1" coll="allreduce" inplace="0">` +
		`<gpu id="0" i_chunks="32768" o_chunks="32768" s_chunks="0"><tb id="0" send="-1" recv="-1" chan="-1">`)
	for i := range 17 {
		fmt.Fprintf(&b, `<step s="%d" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="32768" depid="-1" `+
			`deps="-1" hasdep="0"/>`, i)
	}
	const want = "msccl: line 1: gpu 0 thread block 0 step 16: with this step the file names 1114112 chunks, want at most " +
		"1048576"
	if _, err := msccl.Read([]byte(b.String())); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
