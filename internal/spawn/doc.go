// Package spawn is what programs have in common that start the replicas of a job as processes of this host: gclrun for
// any program, and gclperf for itself. It has the environment of the processes, their tie to the life of the process
// that starts them, and the words for their end. It starts nothing itself.
package spawn
