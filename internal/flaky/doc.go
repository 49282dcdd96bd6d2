// Flaky runs the tests whose outcome could hang on chance, again and again, on a machine that is busy with something
// else: an order of goroutines, a duration or a measurement that decides shows there sooner or later.
//
//	go run ./internal/flaky [-run REGEXP] [-j N] [-loops N] [-progress FILE] [-n]
//
// The tests are in flaky.txt, each with how often it runs, three of them at a time if -j does not say otherwise. Beside
// them run busy loops, six if -loops does not say otherwise; they end with the program. Each run of a test is noted in
// a file, by default flaky.log in the working directory: a program that is ended goes on where it was. With the file
// removed it begins anew. -n runs nothing and prints what the file says.
//
// In the end each test gets a line: how often it has run, how often that failed, and how long one run took. What a test
// said that failed is in the file too. The exit code is 1 if any failed.
package main
