// Package safetensors reads and writes files in the safetensors format of Hugging Face
// (https://github.com/huggingface/safetensors): tensors with names, element types and shapes, and a map of strings.
//
//	8 bytes   n, the length of the header, little endian, at most 100,000,000
//	n bytes   the header: a JSON object that begins with { and ends in spaces, so many that n is a multiple of 8
//	          {"__metadata__":{"made by":"me"},"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}
//	the rest  the tensors' elements, little endian, row-major, where data_offsets says, counted from here
//
// It is as strict as the format: tensors cover the rest without holes and without overlaps, a name stands there once,
// and a tensor has as many bytes as its type and shape want. Files may be hostile: no number in one is believed before
// the file's own length has borne it out, and what Read allocates in all is at most 20 times the header's length,
// which is seen to be there first, and of very many very short strings 40 times. What is quoted of a file in an error
// is cut. The limits are MaxRank, MaxTensors and MaxMeta.
//
// The package opens no files and does not know their names; the caller adds them to its errors, which name the tensor.
package safetensors
