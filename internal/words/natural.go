package words

import "strings"

// Natural compares names for sorting, those that differ in a number at their end by that
// number: r1, r5, r10.
func Natural(a, b string) int {
	const digits = "0123456789"
	if len(a) != len(b) && strings.TrimRight(a, digits) == strings.TrimRight(b, digits) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
