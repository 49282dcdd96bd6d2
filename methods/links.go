package methods

// The tunings by what connects the replicas. tables/links has their tables, with the sources of the sizes.

// IPULinks is the tuning of IPU-Links: that of the open ancestor of GCL in Poplibs, and of GCL's
// syncful.maxBroadcastSize.
func IPULinks() Tuning { return Tuning{MaxBroadcastBytes: 2048, Links: linkTable("ipu")} }

// MemoryLinks is the tuning of messages between replicas of one process.
func MemoryLinks() Tuning { return Tuning{MaxBroadcastBytes: 8 << 10, Links: linkTable("memory")} }

// EngineLinks is the tuning of a message passing engine, such as MPI, between processes of one host. A message that is
// too long to be sent at once waits for its receiver, some microseconds each: 64 tensors of 16 KiB take a third of the
// time between 2 when they are packed, and a sixth among 4 (bench/peers/many).
func EngineLinks() Tuning {
	return Tuning{MaxBroadcastBytes: 1 << 20, Links: linkTable("engine"), SeparateBytes: 16 << 10}
}

// SocketLinks is the tuning of sockets between processes of one host.
func SocketLinks() Tuning { return Tuning{Links: linkTable("sockets")} }

// NetworkLinks is the tuning of a network between hosts.
func NetworkLinks() Tuning { return Tuning{Links: linkTable("network")} }
