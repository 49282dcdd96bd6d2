// Package lane has the turns of the calls that share one connection of a replica.
//
// It knows no transport and no collective.
package lane
