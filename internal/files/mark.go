package files

import "bytes"

// ByteOrderMark is what editors of Windows and spreadsheets begin a file in UTF-8 with. It is no part of the text.
const ByteOrderMark = "\xef\xbb\xbf"

// WithoutMark is what a file has behind its byte order mark: all of it where there is none.
func WithoutMark(b []byte) []byte { return bytes.TrimPrefix(b, []byte(ByteOrderMark)) }
