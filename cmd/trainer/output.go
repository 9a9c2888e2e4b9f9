package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/geoalign/geoalign/internal/words"
)

// output is what a command writes to: standard output or standard error. Text passes it in
// the form in which a terminal only shows it (words.Visible), whoever it is from. The first
// error of a write is kept for the end of the command, so that nobody has to look at each.
type output struct {
	file io.Writer
	most int // bytes of a line of a write that are shown; 0: all

	mu   sync.Mutex
	rest []byte // beginning of a character that a write was cut in
	err  error
	bar  *phaseBar // of its terminal, in whose line text would go on; nil: none was asked for
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	if o.bar != nil {
		o.bar.done()
	}
	text := append(o.rest, p...)
	whole := len(text) - cut(text)
	o.rest = append([]byte(nil), text[whole:]...)
	if _, o.err = io.WriteString(o.file, words.Visible(o.lines(string(text[:whole])))); o.err != nil {
		return 0, o.err
	}
	return len(p), nil
}

// lines cuts the lines of a text that are longer than any that somebody wrote: they quote a file.
func (o *output) lines(text string) string {
	if o.most == 0 || len(text) <= o.most {
		return text
	}
	list := strings.SplitAfter(text, "\n")
	for i, line := range list {
		end := len(strings.TrimSuffix(line, "\n"))
		list[i] = words.Cut(line[:end], o.most) + line[end:]
	}
	return strings.Join(list, "")
}

// phases returns the bar of the terminal of o, f: there is one line for it, whoever draws it.
func (o *output) phases(f *os.File) *phaseBar {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.bar == nil {
		o.bar = &phaseBar{out: f}
	}
	return o.bar
}

// cut returns how many bytes at the end of text begin a character that goes on.
func cut(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if end := text[len(text)-n:]; utf8.RuneStart(end[0]) {
			if utf8.FullRune(end) {
				return 0
			}
			return n
		}
	}
	return 0
}

// finish ends the writes of a command that gave err: it adds that its result could not be
// written, if that is so. Where nobody reads it any more, err is what there is to say.
func (o *output) finish(err error) error {
	rest := o.rest
	o.rest = nil
	if len(rest) > 0 && o.err == nil {
		_, o.err = io.WriteString(o.file, words.Visible(string(rest)))
	}
	if o.err == nil || err != nil && errors.Is(o.err, syscall.EPIPE) {
		return err
	}
	failed := fmt.Errorf("the result could not be written: %w", o.err)
	if err == nil || errors.Is(err, o.err) {
		return failed
	}
	return errors.Join(err, failed)
}

// terminalOf returns the terminal behind w, on which a bar can be drawn, or nil.
func terminalOf(w io.Writer) *os.File {
	if o, ok := w.(*output); ok {
		w = o.file
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

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
