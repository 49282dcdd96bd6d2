//go:build !race

package main

// accuracyReplicas are the numbers of replicas that are trained to the end.
var accuracyReplicas = []int{1, 4, 8}
