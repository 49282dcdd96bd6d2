// Package checkpoint saves the state of a model whose tensors are split over replicas, and loads it onto another number
// of them. It knows nothing of graphs and replicas: a [Tensor] says how its shards are read and written.
//
//	dir/
//	    checkpoint.lock               held by who has opened it, or saves
//	    checkpoint-00000007/
//	        index.json                names, types, shapes and checksums, and the caller's own strings
//	        shard-00000-of-00004.safetensors
//	        ...                       file k has the shard k of every tensor of more than k shards
//	        shard-00003-of-00004.safetensors
//
// A tensor of n elements in s shards is split as package remote splits variables: shard k is the elements from k*c on
// of the flattened tensor, c = ceil(n/s), and zeros past the end. What is saved in 4 shards can be loaded in 2, 8 or 3:
// padding is taken off and put on anew.
//
// # Several processes
//
// Where replicas are processes, [OpenTogether] opens a directory that all share. Each process writes its own shards and
// reads what it needs; that of replica 0 holds the lock, writes the index and renames, when all others have said that
// theirs is on the disk.
//
// # A crash
//
// [Save] makes a checkpoint in a directory beside, ".saving-" and its number, waits until all of it is on the disk, and
// renames it into place; only then does it remove older ones, which it renames to ".removing-" and their number first.
// Whenever a process is killed or the machine loses power (if the disk keeps its promises), the last checkpoint of
// which Save has said that it is saved can be loaded, or the one that was being saved. The next Save removes what a
// crash has left over.
//
// Save needs room for the new checkpoint and the ones it keeps. A disk that is full is an error, and leaves what there
// was. So does everything else that can go wrong, but for the removal of older ones: the error says so.
//
// # Files that are not ours
//
// Save removes nothing but directories of those names in which there are no files but an index and shards. A note that
// is put into a checkpoint's directory therefore keeps it for good.
//
// # Files that lie
//
// [Load] opens the checkpoint with the highest number, and believes nothing: all of it is read and compared, the files
// with the index, the index with what is wanted, every byte with its checksum, before the first Write. What is wrong is
// an error that names the file and the tensor. It does not fall back to an older checkpoint: to lose steps is for the
// user to decide, by moving the damaged one away. So is what has the name of the newest checkpoint and is a file, or a
// symbolic link that leads nowhere; one that leads to a directory is followed.
//
// A shape has at most 64 dimensions, a checkpoint 1,048,576 tensors and 65,536 strings, and an index 100,000,000 bytes:
// more is an error of Save and of Load. Before the checksums have been compared, Load takes at most 40 times the bytes
// of the index and of the files' headers.
//
// Checksums are crc32c: they find damage, not malice.
package checkpoint
