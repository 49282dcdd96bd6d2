// Package agree is how the processes of a job agree, without a server, on who of them is left.
//
//	m := agree.New(id, members, host)  // one for each process, for as long as the job lasts
//	m.Lose(3)                          // its connection has ended, or it has been silent for too long
//	m.Join(note)                       // this process wants to go on without those that are gone
//	m.Hear(from, message)              // whatever another one has told it
//
// # The agreement
//
// Each process has a set of those that it holds for gone. It tells the set to all, once it has been asked to go on, and
// again whenever the set has grown: by what the process sees itself, and by the sets that others tell. So sets only
// grow. A process decides when all that are not in its set have told it the very same set.
//
//	0    {3} ──▶ all          hears {3} of 1 and of 2: decides {3} ──▶ all
//	1        {3} ──▶ all      hears {3} of 0, and that it is decided
//	2            {3} ──▶ all  ...
//	3    is gone
//
// Who hears a decision takes it, and tells it to all in turn, to those that are held for gone too. What follows is the
// next generation: those that are left, in the same order, and behind them one newcomer at most, the lowest of those
// that all have told of. Generations are counted, and messages say of which they are.
//
// A process that hears that it is held for gone ends: those that say so never take it back.
//
// # Why there are never two jobs
//
// Two processes may decide differently only if one of them is in the other's set: else both would have told each other
// the same set. Say p has decided for P, and q for a greater set Q which has p in it. All that Q leaves have told Q.
// Who has decided for P tells no set any more. Who has told Q takes P only from one that Q leaves, which has then
// decided for P, so that Q never comes. Hence all who have decided for P are in Q: no more than half of the last
// generation, as Host.May has it, and fewer than half of those that P leaves. They wait in their generation for those
// who went on with Q, miss them, and may not go on.
//
// Where a kernel says of all that are gone that they have ended, no half is needed, unless this process was stopped for
// so long that they may have gone on without it, with newcomers, before they ended: Host.May says which.
//
// The package does no input and output and has no time. Its tests run it by seeds.
package agree
