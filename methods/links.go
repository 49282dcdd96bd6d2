package methods

// The numbers of Tuning, by what connects the replicas. Those of networks are first guesses, to be replaced by what is
// measured there.

// IPULinks are the values for IPU-Links: those of the open ancestor of GCL in Poplibs, and of GCL's
// syncful.maxBroadcastSize.
func IPULinks() Tuning {
	return Tuning{MaxBroadcastBytes: 2048, MeetInMiddleBytes: [3]int64{1_245_184, 4_980_736, 39_845_888}}
}

// MemoryLinks are the values for messages between replicas of one process. They are those at which gclperf
// -implementation Syncless -method broadcast,direct shows the methods to be equal on two cores: 8 KiB of group size x
// bytes for an all-reduce over 2 to 16 replicas, about 4 MiB for a broadcast.
func MemoryLinks() Tuning {
	return Tuning{MaxBroadcastBytes: 8 << 10, MaxBroadcastFromRootBytes: 4 << 20, Direct: true}
}

// EngineLinks are the values for a message passing engine, such as MPI, between processes of one host. They are about
// where gclperf -transport mpi -method broadcast,direct,recursive_doubling shows the methods to be equal by Open MPI
// 4.1.4 and MPICH 4.0.2 on four cores, one for each process (2026-11-23, medians of three jobs). For an all-reduce they
// are at 400 KiB between 2 and 512 KiB among 4 with the first, at 4 MiB and 128 KiB with the second; for a broadcast at
// 4 MiB or later. recursive_doubling is nowhere ahead of both others, up to 8. What holds for more is an estimate. A
// message that is too long to be sent at once waits for its receiver, some microseconds each: 64 tensors of 16 KiB take
// a third of the time between 2 when they are packed, and a sixth among 4 (bench/peers/many).
func EngineLinks() Tuning {
	return Tuning{
		MaxBroadcastBytes: 1 << 20, DoublingBytes: [3]int64{0, 0, 8 << 10},
		MaxBroadcastFromRootBytes: 4 << 20, SeparateBytes: 16 << 10, Direct: true,
	}
}

// SocketLinks are the values for sockets between processes of one host. A message costs each end a call of the system
// there, and a round a wait, some microseconds each. They are where gclperf -transport unix -method
// recursive_doubling,direct,broadcast shows the methods to be equal on four cores (2026-11-22, the least of five
// rounds): an all-reduce between 2 at 128 KiB and among 4 at 64 KiB, all-gather, reduce-scatter and broadcast among 4
// there or a little later, an all-to-all among 4 between 8 and 32 KiB. Over TCP an all-reduce could go on to 512 and
// 256 KiB, and among 8, twice as many as there are cores, all but the all-to-all to 128 KiB and more. What holds for
// more than 8 is an estimate.
func SocketLinks() Tuning {
	return Tuning{
		DoublingBytes:             [3]int64{128 << 10, 64 << 10, 64 << 10},
		MaxBroadcastFromRootBytes: 32 << 10, Direct: true,
	}
}

// NetworkLinks are the values for a network between hosts. They are estimates: nothing was measured. The number for 2
// is that of SocketLinks: between 2 recursive_doubling sends as many bytes as direct, in half the rounds. The others
// are Open MPI's: it takes recursive doubling for an all-reduce below 10,000 bytes (intermediate_message in
// ompi_coll_tuned_allreduce_intra_dec_fixed, measured on a cluster with Myrinet). MPICH does so up to 2,048
// (MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE).
func NetworkLinks() Tuning {
	return Tuning{
		DoublingBytes:             [3]int64{128 << 10, 10_000, 10_000},
		MaxBroadcastFromRootBytes: 10_000, Direct: true,
	}
}
