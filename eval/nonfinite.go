package eval

// NonFiniteError says that a model gave a number that is not finite: it has diverged, and gives no other one another
// time.
type NonFiniteError struct {
	What string // which number is what, and of what
	Cure string // what to do
}

// Error says both.
func (e *NonFiniteError) Error() string { return e.What + ": " + e.Cure }
