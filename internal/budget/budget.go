// Package budget bounds what small inputs become. Whoever decodes, inflates or normalises what others made says before
// it begins, from headers, how many bytes that will take (Check), reads no more than it may (Reader), and shares the
// memory for large pieces with others (Shared). Training, checks and servers use the same bounds, so that what one
// refuses all do.
package budget

import "fmt"

// Error says that something would take more memory than it may.
type Error struct {
	What  string // such as "a PNG image of 8000x8000"
	Need  int64  // bytes; 0: more than Limit, and nobody knows how many
	Limit int64  // bytes
	Try   string // what to do
}

// Error says what takes how much, the limit and what to do.
func (e *Error) Error() string {
	need := Bytes(e.Need)
	if e.Need <= 0 {
		return fmt.Sprintf("%s takes more than the %s that it may: %s", e.What, Bytes(e.Limit), e.Try)
	}
	return fmt.Sprintf("%s takes %s, more than the %s that it may: %s", e.What, need, Bytes(e.Limit), e.Try)
}

// Check returns an *Error where need bytes are more than limit.
func Check(what string, need, limit int64, try string) error {
	if need > limit {
		return &Error{What: what, Need: need, Limit: limit, Try: try}
	}
	return nil
}

// Bytes writes a number of bytes for people: 512 bytes, 3.2 kB, 465 MB.
func Bytes(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if n >= u.size {
			return fmt.Sprintf("%.3g %s", float64(n/(u.size/1000))/1000, u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
