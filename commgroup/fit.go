package commgroup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// misfit is the error of a size and a stride that do not cut n replicas into groups. It names those that would, where
// n is no more than namedReplicas.
func misfit(n, size, stride int) error {
	text := fmt.Sprintf("commgroup: %d replicas are not a multiple of size %d", n, size)
	if stride > 1 {
		text += fmt.Sprintf(" times stride %d", stride)
	}
	switch {
	case n > namedReplicas:
		return fmt.Errorf("%s: want a product that divides %d", text, n)
	case n%stride == 0 && stride > 1:
		return fmt.Errorf("%s: with stride %d want a size of %s", text, stride, oneOf(divisors(n/stride), size))
	case n%size == 0:
		return fmt.Errorf("%s: with size %d want a stride of %s", text, size, oneOf(divisors(n/size), stride))
	case stride > 1:
		return fmt.Errorf("%s: want a size of %s, and a stride that divides %d by it",
			text, oneOf(divisors(n), size), n)
	}
	return fmt.Errorf("%s: want a size of %s", text, oneOf(divisors(n), size))
}

// namedReplicas bounds the search for divisors: at most 2^12 divisions.
const namedReplicas = 1 << 24

// divisors returns the numbers that divide n, the smallest first.
func divisors(n int) []int {
	var low, high []int
	for d := 1; d <= n/d; d++ {
		if n%d != 0 {
			continue
		}
		low = append(low, d)
		if d != n/d {
			high = append(high, n/d)
		}
	}
	slices.Reverse(high)
	return append(low, high...)
}

// oneOf lists numbers, as in "1, 2 or 4". Of more than eight it lists the eight next to one that is not among them.
func oneOf(numbers []int, near int) string {
	const most = 8
	end := ""
	if len(numbers) > most {
		at, _ := slices.BinarySearch(numbers, near)
		first := min(max(at-most/2, 0), len(numbers)-most)
		numbers, end = numbers[first:first+most], fmt.Sprintf(" (of %d that would do)", len(numbers))
	}
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	last := len(words) - 1
	if last == 0 {
		return words[0] + end
	}
	return strings.Join(words[:last], ", ") + " or " + words[last] + end
}
