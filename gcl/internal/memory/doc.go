// Package memory has what is asked of buffers as memory, whatever they hold: where one begins, whether two overlap, and
// room that grows and is kept.
package memory
