package library

// cCall is a call of a C function that takes up to four whole numbers or pointers
// and returns a status. The layout is known to the assembly of call_amd64.s.
type cCall struct {
	fn   uintptr
	args [4]uintptr
}

// callChain is a list of C calls that are made one after the other, up to the
// first whose status is not 0. It lives on the heap, since a stack may move.
// Leaving Go and coming back costs more than most of the calls.
type callChain struct {
	calls  [6]cCall
	n      int     // 240: number of calls
	status uintptr // 248: of the last call made
	// self is the argument list of the call: one that the call made itself would
	// be allocated each time.
	self [1]uintptr
}
