package tasks

import "strings"

// mostListed is the number of names that a message lists.
const mostListed = 12

// Cut writes some names for people.
func Cut(names []string) string {
	if len(names) <= mostListed {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:mostListed-1], ", ") + ", ... , " + names[len(names)-1]
}
