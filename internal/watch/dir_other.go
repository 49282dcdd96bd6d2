//go:build !unix

package watch

import "errors"

// Dir is an error: there is no directory of which a process knows that it is its user's alone.
func Dir() (string, error) {
	return "", errors.New("the state of jobs can only be asked for on Unix")
}

func gone(int) bool { return false }

func silence(int) string { return "does not answer" }
