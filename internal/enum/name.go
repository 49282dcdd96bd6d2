package enum

import "fmt"

// MaxName is the most bytes that CheckName takes in a name. Names stand in tables, in options and in benchmarks.
const MaxName = 64

// CheckName refuses a malformed name that a program gives to what, as in "a method". The error does not name the
// package.
func CheckName(what, name string) error {
	wrong := len(name) > MaxName || name == "" || name[0] < 'a' || name[0] > 'z'
	for _, b := range []byte(name) {
		wrong = wrong || b != '_' && (b < 'a' || b > 'z') && (b < '0' || b > '9')
	}
	if wrong {
		return fmt.Errorf("%.*q is no name for %s: want a lower case letter, and at most %d lower case letters, digits "+
			"and underscores behind it", 2*MaxName, name, what, MaxName-1)
	}
	return nil
}
