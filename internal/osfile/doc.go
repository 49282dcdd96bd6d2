// Package osfile is what package os has not got: a lock on a file, and a way to make the names in a directory outlast
// the machine. Where a system has neither, its functions do nothing and say so.
package osfile
