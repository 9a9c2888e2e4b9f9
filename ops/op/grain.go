package op

// ElementGrain is the least number of elements worth a thread in an operation
// that does next to nothing with each.
const ElementGrain = 16384

// RowGrain returns how many rows of the given width are worth a thread.
func RowGrain(cols int) int { return max(1, 8192/max(1, cols)) }
