package files

import (
	"bufio"
	"bytes"
)

// ByteOrderMark is what editors of Windows and spreadsheets begin a file in UTF-8 with. It is no part of the text.
const ByteOrderMark = "\xef\xbb\xbf"

// WithoutMark is what a file has behind its byte order mark: all of it where there is none.
func WithoutMark(b []byte) []byte { return bytes.TrimPrefix(b, []byte(ByteOrderMark)) }

// SkipMark takes a byte order mark, where there is one, off the beginning of r. What is wrong with r its next read
// tells.
func SkipMark(r *bufio.Reader) {
	if start, _ := r.Peek(len(ByteOrderMark)); string(start) == ByteOrderMark {
		r.Discard(len(ByteOrderMark)) //nolint:errcheck // it was just peeked at
	}
}
