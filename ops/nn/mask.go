package nn

// MaskWords returns the int32 words of one row of a dropout mask.
func MaskWords(cols int) int { return (cols + 31) / 32 }
