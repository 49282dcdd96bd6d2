// Package methodtest holds a method of one's own to all that package methods promises of the library's: [Prove].
//
//	func TestStar(t *testing.T) { methodtest.Prove(t, star, 2, 3, 4, 5, 8) }
package methodtest
