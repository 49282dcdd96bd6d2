// Mutants tries how good the tests are: it puts one fault at a time into a copy of the tree and runs the tests that
// should find it.
//
//	go run ./internal/mutants [-run REGEXP] [-j N] [-dir TREE] [-trust] [-n]
//
// The faults are in mutants.txt, which says how they are written. The tree that they are put into is the one in the
// working directory, or that of -dir, so that the same faults can be tried on tests of another state.
//
// First it says how many faults still apply; with -n that is all. Then the tests run on the tree as it is, since a test
// that fails in any case finds nothing; -trust leaves that out. After that every fault gets a line, with how long it
// took, the verdict, and the test that found it:
//
//	killed      a test fails
//	timeout     the tests hang; that counts as found
//	SURVIVED    the tests pass
//	INVALID     it does not compile, its text is not in the file exactly once, or its tests do not pass without it
//
// The exit code is 1 if any fault survived or is invalid.
package main
