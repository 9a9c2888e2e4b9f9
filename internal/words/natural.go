package words

import "strings"

// Natural compares names for sorting, those that differ in a number at their end by that
// number: r1, r5, r10.
func Natural(a, b string) int {
	const digits = "0123456789"
	if stem := strings.TrimRight(a, digits); stem == strings.TrimRight(b, digits) {
		x, y := strings.TrimLeft(a[len(stem):], "0"), strings.TrimLeft(b[len(stem):], "0")
		if len(x) != len(y) {
			return len(x) - len(y)
		}
		if x != y {
			return strings.Compare(x, y)
		}
	}
	return strings.Compare(a, b)
}
