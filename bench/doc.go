// Package bench compares methods, implementations, group sizes, sizes and transports, and a training step
// written by hand with the same as a program of package ir. It holds no code but tests and benchmarks:
//
//	go test -bench . ./bench
//
// prints a line for each case, for about five minutes. README.md beside this file says how to read, choose and compare
// them.
package bench
