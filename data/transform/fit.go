package transform

// Fit returns m with at most side pixels a side, of the shape that it has; a smaller one stays as it is.
func Fit(m *Image, side int) (*Image, error) {
	longer := max(m.W, m.H)
	if longer <= side {
		return m, nil
	}
	return Resize(m, max(1, m.W*side/longer), max(1, m.H*side/longer))
}
