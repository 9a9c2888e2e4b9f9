package budget

import "io"

// Reader reads what r inflates to, and fails with an *Error where that is more than limit bytes.
func Reader(r io.Reader, what string, limit int64, try string) io.Reader {
	return &reader{r: r, left: limit, err: &Error{What: what, Limit: limit, Try: try}}
}

type reader struct {
	r    io.Reader
	left int64
	err  *Error
}

// Read implements io.Reader. It asks for a byte more than is left, to tell an end from a limit.
func (r *reader) Read(b []byte) (int, error) {
	if r.left < 0 {
		return 0, r.err
	}
	if int64(len(b)) > r.left+1 {
		b = b[:r.left+1]
	}
	n, err := r.r.Read(b)
	if r.left -= int64(n); r.left < 0 {
		return n - 1, r.err
	}
	return n, err
}
