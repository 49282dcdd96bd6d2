// Package commgroup says which replicas talk to each other.
//
// A collective runs in every group of a partition of the replicas at once, each group by itself. A [Group] describes
// the partition in three words (type, size, stride) without knowing how many replicas there are, or lists the replicas
// of each group, made by [Lists]. [Group.Resolve] checks it against that number and returns a [Layout], which answers
// every question about who is where. The package knows
// nothing of data, methods or links: it is arithmetic on replica ids.
//
//	Group                         groups of 8 replicas
//	ALL                           {0 1 2 3 4 5 6 7}
//	CONSECUTIVE(4)                {0 1 2 3} {4 5 6 7}
//	CONSECUTIVE(2, stride 2)      {0 2} {1 3} {4 6} {5 7}
//	CONSECUTIVE(2, stride 4)      {0 4} {1 5} {2 6} {3 7}
//	ORTHOGONAL(2)                 {0 4} {1 5} {2 6} {3 7}
//	ORTHOGONAL(4)                 {0 2 4 6} {1 3 5 7}
//	LISTS({0 3 6} {1 2} {4 5 7})  {0 3 6} {1 2} {4 5 7}
//
// # Rules
//
//   - Size 0 means all replicas, stride 0 means the type's own stride: 1, or for Orthogonal the number of replicas
//     divided by the size.
//   - With N replicas, size k and stride s, N must be a multiple of s*k. An Orthogonal group has no stride to choose: N
//     must be a multiple of k, and an explicit stride above 1 is an error. So is a size for All that is not N.
//   - Lists have every replica exactly once, and no others. One that is to sit out is a group of its own.
//   - A replica's rank is its index in its group; members are numbered by ascending replica id, whatever their order in
//     lists. So a group is a set: replicas that list it in different orders agree, as in torch.distributed.new_group,
//     and members on one host stay neighbours where hosts hold neighbours.
//   - Groups are numbered 0, 1, 2, ... by their first members, ascending.
//   - A question about a replica or group that does not exist is answered with -1 or nil, never with a panic.
//
// The text form of a Group, as above, parses back to the same value.
package commgroup
