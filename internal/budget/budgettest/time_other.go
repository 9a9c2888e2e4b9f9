//go:build !unix

package budgettest

import "time"

// processorTime is not known here.
func processorTime() time.Duration { return 0 }
