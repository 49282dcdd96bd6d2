//go:build !linux

package remote

var native = plain
