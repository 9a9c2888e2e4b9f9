package main

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// errUnread is why a command stops when what reads its standard output or error has ended.
var errUnread = errors.New("nobody reads standard output or standard error any more")

// pipe is standard output or error.
type pipe struct {
	io.Writer
	broken func() // called when nobody reads it any more
}

// outlet returns a stream of the process that calls broken when nobody reads it any more, as
// of a pipe whose other end is closed. A terminal is returned as it is: its end is a signal.
func outlet(f *os.File, broken func()) io.Writer {
	if terminalOf(f) != nil {
		return f
	}
	return pipe{f, broken}
}

// Write implements io.Writer.
func (p pipe) Write(b []byte) (int, error) {
	n, err := p.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		p.broken()
	}
	return n, err
}
