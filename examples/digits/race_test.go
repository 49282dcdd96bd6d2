//go:build race

package main

// accuracyReplicas are the numbers of replicas that are trained to the end. Under the race detector there are none: the
// other tests run the same code.
var accuracyReplicas = []int{}
