// Package lane has what calls on one connection of a replica share: whose turn it is, and memory that grows and is
// kept.
//
// It knows no transport and no collective.
package lane
