// Package streamsim tries the protocol of package stream by seeds. It has tests only.
//
//	go test ./transport/internal/stream/streamsim                       # what CI runs
//	go test ./transport/internal/stream/streamsim -run Seeds -seeds 1000000 -timeout 2h
//	go test ./transport/internal/stream/streamsim -run Seeds -seed 123 -v  # one seed, step by step
//
// A seed decides a program, a fault, the links, all delays, and who runs next. The nodes and lanes are those of package
// stream, unchanged; a world stands in the place of sockets and of the scheduler:
//
//	world                       one actor runs at a time; events have their instants in the virtual time of a bubble
//	 ├─ actor                   a goroutine of a replica: the calls of a lane, or a Close
//	 ├─ node (a stream.Host)    control messages and dials, as events
//	 └─ pipe, end (Link)        bytes in one direction, which arrive in pieces, as events
//
// An actor gives way where it parks, where it waits for the turn of a lane, and at some calls of a Link. So a seed
// replays exactly. docs/design/seeds.md has the shapes of the programs, the faults, and what is checked.
package streamsim
