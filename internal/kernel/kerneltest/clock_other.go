//go:build !linux

package kerneltest

import "time"

// Clock returns the time of day.
func Clock() time.Duration { return time.Duration(time.Now().UnixNano()) }
