package dynlib

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// probeVariable names what a child process does.
const probeVariable = "GEOALIGN_PROBE"

// servant is what a child process does: it reads questions and writes answers, each a line of JSON, and returns the
// exit status.
type servant func(args []string, questions io.Reader, answers io.Writer) int

var servants = map[string]servant{}

// Serve makes a servant known by a name, which Start takes. It is for init functions of packages.
func Serve(name string, do func(args []string, questions io.Reader, answers io.Writer) int) {
	servants[name] = do
}

// Child is this program again, in a process of its own, which does what may end or hang a process. One goroutine at
// a time may use it.
type Child struct {
	command   *exec.Cmd
	questions io.WriteCloser
	file      *os.File
	answers   *bufio.Reader
	messages  bytes.Buffer
}

// EndedError says how a child ended that owed an answer, in words that follow what it did: "its self-test ended ...".
type EndedError struct {
	How     string
	Late    bool // it took too long
	Outside bool // a signal ended it that says nothing of what it did, such as the interrupt of the whole program
}

// Error implements error.
func (e *EndedError) Error() string { return e.How }

// Start begins a child with the servant of a name. It takes a program that begins with ProbeInChild.
func Start(name string, args ...string) (*Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &Child{command: exec.Command(self, args...), file: r, answers: bufio.NewReader(r)}
	c.command.Env = append(os.Environ(), probeVariable+"="+name)
	c.command.ExtraFiles = []*os.File{w}
	c.command.Stderr = &limitedBuffer{&c.messages, 4096}
	c.command.WaitDelay = time.Second
	if c.questions, err = c.command.StdinPipe(); err == nil {
		err = c.command.Start()
	}
	w.Close()
	if err != nil {
		r.Close()
		return nil, err
	}
	return c, nil
}

// Ask sends a question, unless it is nil, and sets answer to the next answer, which must come within limit. The error
// is an *EndedError; the child is closed then.
func (c *Child) Ask(question, answer any, limit time.Duration) error {
	if question != nil {
		text, err := json.Marshal(question)
		if err != nil {
			return err
		}
		_, _ = c.questions.Write(append(text, '\n')) // a child that has ended gives no answer
	}
	_ = c.file.SetReadDeadline(time.Now().Add(limit))
	for {
		line, err := c.answers.ReadBytes('\n')
		if err != nil {
			return c.ended(errors.Is(err, os.ErrDeadlineExceeded), limit)
		}
		if json.Unmarshal(line, answer) == nil {
			return nil
		}
	}
}

// ended waits for the end of the child and says how it was.
func (c *Child) ended(late bool, limit time.Duration) error {
	if late {
		_ = c.command.Process.Kill()
	}
	// One that closes its answers and goes on must not hold us.
	stop := time.AfterFunc(time.Second, func() { _ = c.command.Process.Kill() })
	defer stop.Stop()
	_ = c.questions.Close()
	err := c.command.Wait()
	c.file.Close()
	e := &EndedError{How: "ended a trial process (exit status 0)"}
	switch {
	case late:
		e.How, e.Late = fmt.Sprintf("gave no answer within %v", limit), true
	case err != nil:
		e.How, e.Outside = "ended a trial process ("+err.Error()+")", fromOutside(c.command.ProcessState)
	}
	if line := firstLine(c.messages.String()); line != "" {
		e.How += ", which said " + line
	}
	return e
}

// Close ends a child that owes no answer.
func (c *Child) Close() {
	_ = c.command.Process.Kill()
	_ = c.command.Wait()
	c.file.Close()
}

// firstLine returns the first line of s that says something, cut to a length that
// fits a warning.
func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			return line[:min(len(line), 200)]
		}
	}
	return ""
}

// limitedBuffer keeps the first bytes that are written to it.
type limitedBuffer struct {
	to   *bytes.Buffer
	room int
}

// Write implements io.Writer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	n := min(len(p), b.room)
	b.to.Write(p[:n])
	b.room -= n
	return len(p), nil
}
