package main

// replays are calls of seeds, in a group of five, as they have always been.
var replays = map[uint64]string{
	0:  "Scatter g=5 op=ADD root=0 several=false tensors=false runs=3 class=0 [int64 n=0 row=1 counts=[] sent=[] shape=0]",
	1:  "AllReduce g=5 op=MUL root=0 several=false tensors=false runs=1 class=1 [uint32 n=95 row=1 counts=[] sent=[] shape=3]",
	3:  "Broadcast g=5 op=ADD root=4 several=true tensors=false runs=2 class=0",
	4:  "Broadcast g=5 op=ADD root=3 several=true tensors=true runs=1 class=0 [uint8 n=2111 row=1 counts=[] sent=[] shape=2]",
	5:  "ReduceScatter g=5 op=MEAN root=0 several=true tensors=false runs=1 class=1",
	6:  "Scatter g=5 op=ADD root=2 several=false tensors=false runs=1 class=0 [uint8 n=5 row=1 counts=[] sent=[] shape=0]",
	7:  "ReduceScatter g=5 op=SQUARE_ADD root=0 several=false tensors=false runs=1 class=1 [uint64 n=33 row=1 counts=[] sent=[] shape=2]",
	8:  "AllToAll g=5 op=ADD root=0 several=false tensors=false runs=2 class=0 [bool n=79 row=1 counts=[] sent=[] shape=0]",
	9:  "Gather g=5 op=ADD root=4 several=false tensors=false runs=1 class=0 [int8 n=69 row=1 counts=[] sent=[] shape=1]",
	10: "Gather g=5 op=ADD root=2 several=true tensors=true runs=1 class=0 [float16 n=8 row=1 counts=[] sent=[] shape=1] [uint64 n=8 row=1 counts=[] sent=[] shape=3]",
	11: "ReduceScatterMapped g=5 op=MIN root=0 several=false tensors=false runs=2 class=2 [float64 n=13 row=1 counts=[] sent=[] shape=3] mapping [13]",
	12: "AllGatherV g=5 op=ADD root=0 several=true tensors=false runs=1 class=0",
}
