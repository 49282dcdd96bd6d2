// Package closest finds which of the known words somebody may have meant, for errors about unknown ones.
package closest

import "strings"

// maxRunes is how much of a word is looked at. It is more than any known word has, and bounds the time that nonsense
// takes.
const maxRunes = 64

// Of returns the one of choices that takes the fewest edits to become word: letters put in, left out, changed, or
// swapped with their neighbour, in either case. Of equally close ones it is the first, and "" if there are none.
//
// It takes time proportional to the lengths of word and of each choice, of which it looks at 64 letters.
func Of(word string, choices []string) string {
	best, least := "", -1
	for _, c := range choices {
		if d := distance(letters(word), letters(c)); least < 0 || d < least {
			best, least = c, d
		}
	}
	return best
}

// Near is Of where word is like a choice: where half of its letters at most are edited, or where exactly one choice
// begins with it. Else it returns "".
func Near(word string, choices []string) string {
	begun := ""
	for _, c := range choices {
		if len(word) > 1 && strings.HasPrefix(strings.ToLower(c), strings.ToLower(word)) {
			if begun != "" {
				begun = ""
				break
			}
			begun = c
		}
	}
	if begun != "" {
		return begun
	}
	best := Of(word, choices)
	if w := letters(word); 2*distance(w, letters(best)) > len(w) {
		return ""
	}
	return best
}

func letters(word string) []rune {
	if len(word) > 4*maxRunes {
		word = word[:4*maxRunes] // 4 bytes are one rune at least
	}
	runes := []rune(strings.ToLower(word))
	return runes[:min(len(runes), maxRunes)]
}

// distance is the number of edits between a and b by optimal string alignment: no letter is edited twice.
//
// at[i][j] is that between the first i letters of a and the first j of b.
func distance(a, b []rune) int {
	at := make([][]int, len(a)+1)
	for i := range at {
		at[i] = make([]int, len(b)+1)
		at[i][0] = i
	}
	for j := range at[0] {
		at[0][j] = j
	}
	for i := range a {
		for j := range b {
			change := at[i][j]
			if a[i] != b[j] {
				change++
			}
			d := min(change, at[i][j+1]+1, at[i+1][j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, at[i-1][j-1]+1)
			}
			at[i+1][j+1] = d
		}
	}
	return at[len(a)][len(b)]
}
