package exec

import "fmt"

// MemoryError refuses a graph whose planned buffers are larger than allowed. Nothing
// was allocated.
type MemoryError struct {
	Need, Max int64 // bytes
}

// Error says what is needed and what there is.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("exec: the results of this graph need %d MB, more than the %d MB that may be used", e.Need>>20,
		e.Max>>20)
}
