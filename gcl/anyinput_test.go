package gcl_test

import (
	"context"
	"testing"

	"gogcl.dev/chunks"
	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/anyinput"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport/inproc"
)

// TestAnyInput: no call panics, on a Comm that is nil or zero, that is alone, or that is closed, whatever it is given.
func TestAnyInput(t *testing.T) {
	alone := func() *gcl.Comm {
		ends, err := inproc.New(1)
		if err != nil {
			t.Fatal(err)
		}
		c, err := gcl.New(ends[0])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	closed := alone()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	vector, err := tensor.New(tensor.F32, 4)
	if err != nil {
		t.Fatal(err)
	}
	open := alone()
	t.Cleanup(func() { gcl.LabelCalls(false) })
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{
			"AllGather": gcl.AllGather[float32], "AllGatherMany": gcl.AllGatherMany[float32],
			"AllGatherManyTo": gcl.AllGatherManyTo[float32], "AllGatherMapped": gcl.AllGatherMapped[float32],
			"AllGatherMappedTo": gcl.AllGatherMappedTo[float32], "AllGatherTo": gcl.AllGatherTo[float32],
			"AllGatherWithinReplica": gcl.AllGatherWithinReplica[float32], "AllReduce": gcl.AllReduce[float32],
			"AllReduceInPlace": gcl.AllReduceInPlace[float32], "AllReduceMany": gcl.AllReduceMany[float32],
			"AllReduceManyInPlace": gcl.AllReduceManyInPlace[float32],
			"AllReduceManyTo":      gcl.AllReduceManyTo[float32], "AllReduceTo": gcl.AllReduceTo[float32],
			"AllReduceWithinReplica": gcl.AllReduceWithinReplica[float32], "AllToAll": gcl.AllToAll[float32],
			"AllToAllInPlace": gcl.AllToAllInPlace[float32],
			"AllToAllTo":      gcl.AllToAllTo[float32],
			"Alloc":           gcl.Alloc[float32], "Broadcast": gcl.Broadcast[float32],
			"BroadcastInPlace": gcl.BroadcastInPlace[float32],
			"BroadcastTo":      gcl.BroadcastTo[float32],
			"Execute":          gcl.Execute[float32], "Send": gcl.Send[float32], "Recv": gcl.Recv[float32],
			"SendRecv": gcl.SendRecv[float32], "WaitAll": gcl.WaitAll, "Free": gcl.Free[float32], "Join": gcl.Join, "RunOrJoin": gcl.RunOrJoin, "RunProcess": gcl.RunProcess,
			"Rejoin": gcl.Rejoin, "WithElastic": gcl.WithElastic,
			"ReduceScatter":              gcl.ReduceScatter[float32],
			"ReduceScatterMany":          gcl.ReduceScatterMany[float32],
			"ReduceScatterManyTo":        gcl.ReduceScatterManyTo[float32],
			"ReduceScatterMapped":        gcl.ReduceScatterMapped[float32],
			"ReduceScatterMappedTo":      gcl.ReduceScatterMappedTo[float32],
			"ReduceScatterTo":            gcl.ReduceScatterTo[float32],
			"ReduceScatterWithinReplica": gcl.ReduceScatterWithinReplica[float32],
			"AllGatherTensors":           gcl.AllGatherTensors, "AllGatherTensorsTo": gcl.AllGatherTensorsTo,
			"AllReduceTensors": gcl.AllReduceTensors, "AllReduceTensorsInPlace": gcl.AllReduceTensorsInPlace,
			"AllReduceTensorsTo":     gcl.AllReduceTensorsTo,
			"ReduceScatterTensors":   gcl.ReduceScatterTensors,
			"ReduceScatterTensorsTo": gcl.ReduceScatterTensorsTo, "New": gcl.New,
			"Reduce": gcl.Reduce[float32], "ReduceTo": gcl.ReduceTo[float32],
			"ReduceInPlace": gcl.ReduceInPlace[float32],
			"Gather":        gcl.Gather[float32], "GatherTo": gcl.GatherTo[float32],
			"Scatter": gcl.Scatter[float32], "ScatterTo": gcl.ScatterTo[float32],
			"AllGatherV": gcl.AllGatherV[float32], "AllGatherVTo": gcl.AllGatherVTo[float32],
			"ReduceScatterV": gcl.ReduceScatterV[float32], "ReduceScatterVTo": gcl.ReduceScatterVTo[float32],
			"GatherV": gcl.GatherV[float32], "GatherVTo": gcl.GatherVTo[float32],
			"ScatterV": gcl.ScatterV[float32], "ScatterVTo": gcl.ScatterVTo[float32],
			"AllToAllV": gcl.AllToAllV[float32], "AllToAllVTo": gcl.AllToAllVTo[float32],
			"AllToAllVInPlace": gcl.AllToAllVInPlace[float32],

			"AppendV": gcl.AppendV[float32],
			"Append":  gcl.Append[float32], "AppendAll": gcl.AppendAll[float32],
			"ParseImplementation": gcl.ParseImplementation, "ParseLink": gcl.ParseLink,
			"ParseOperator": gcl.ParseOperator, "ParseOptions": gcl.ParseOptions, "Dump": gcl.Dump,
			"DumpOnSignal": gcl.DumpOnSignal, "LabelCalls": gcl.LabelCalls, "WithDumpOnQuit": gcl.WithDumpOnQuit,
			"Run": gcl.Run, "WithEndpoints": gcl.WithEndpoints, "WithOptions": gcl.WithOptions,
			"WithTopology": gcl.WithTopology, "WithNetwork": gcl.WithNetwork, "WithStallAfter": gcl.WithStallAfter, "WithMethod": gcl.WithMethod,
			"NewOperator": gcl.NewOperator[float32],
		},
		Types: []any{gcl.JoinConfig{}, gcl.Checksum(0), gcl.Change{}, gcl.Departure{}, gcl.Elastic{}, gcl.StepError{},
			gcl.Batch{}, gcl.Candidate{}, gcl.Comm{}, gcl.Explanation{}, gcl.Skipped{},
			gcl.Implementation(0), gcl.Link(0),
			gcl.Operator(0), gcl.OperatorProperty(0), gcl.OptionError{}, gcl.Options{},
			gcl.NotFiniteError{}, gcl.UnequalError{},
			gcl.PanicError{}, gcl.Path(0), gcl.PeerError{}, gcl.CommOption(nil), gcl.Trace{}, gcl.TraceCall{},
			gcl.TraceMethod{}, gcl.TraceSegment{}, gcl.Work{},
		},
		Values: []any{
			open, closed, &gcl.Comm{}, open.Batch(schedule.AllReduce, gcl.Add, 0), schedule.AllReduce, vector,
			context.Background(), gcl.Add, gcl.Mean, []float32{1, 2, 3}, []float32{}, [][]float32{{1}, {2, 3}},
			chunks.Mapping{3, 4}, commgroup.Group{}, []*tensor.Tensor{vector, vector}, []*tensor.Tensor{{}},
			gcl.Options{}, 0, 1, "star", star, func(_, _, _ []float32) {}, []int{3}, []int{0}, []int{-1}, []int{1, 2},
			[][]int{{1}, {2}},
		},
		Skip: map[string]string{
			"Comm.Close":   "others are to be called with the Comm open",
			"DumpOnSignal": "it takes nothing, and starts a goroutine until its stop is called",
		},
	})
}
