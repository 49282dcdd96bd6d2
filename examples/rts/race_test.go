//go:build race

package main

// accuracyReplicas are the numbers of replicas that are trained to the end; under the race detector that takes ten
// times as long, and the other tests run the same code.
var accuracyReplicas = []int{4}
