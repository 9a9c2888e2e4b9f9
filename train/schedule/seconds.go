package schedule

import (
	"math"
	"time"
)

// longest is the most whole seconds of a time.Duration.
const longest = math.MaxInt64 / time.Second * time.Second

// Seconds returns so many seconds, at most the longest time.Duration of whole seconds, which is 292 years.
func Seconds(n float64) time.Duration {
	if d := n * float64(time.Second); d < float64(longest) {
		return time.Duration(d)
	}
	return longest
}
