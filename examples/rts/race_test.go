//go:build race

package main

// Under the race detector training takes much longer, and other numbers of replicas run the same code.
var (
	accuracyReplicas = []int{2} // trained to the end
	verifyReplicas   = []int{3} // of which every step is verified
	resumeReplicas   = []int{3} // stopped and resumed
)
