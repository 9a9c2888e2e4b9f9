package batch

// Pool is features that columns name by the number of their row: those that the data has of
// one side, with partner or without.
type Pool interface {
	Rows() int
	Width() int
	// Row copies row i to dst (Width). Several goroutines may call it.
	Row(i int, dst []float32) error
}
