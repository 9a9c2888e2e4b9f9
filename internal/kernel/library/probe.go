package library

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
)

// probeVariable names the backend to try in a child process.
const probeVariable = "GEOALIGN_PROBE"

// probeTimeout is how long a library may take to load and to multiply a few small
// matrices before it counts as broken.
var probeTimeout = 10 * time.Second

// probing is true where libraries are tried in a child process.
var probing atomic.Bool

// ProbeInChild makes this process try each library in a child process before it
// loads it, so that a library that crashes, ends the process or never returns is
// passed over with a warning. It must be the first thing that main does: the child
// is this program again, and in it ProbeInChild does the trial and does not
// return. What came out is kept in the user's cache folder, so that a later start
// needs no child.
func ProbeInChild() {
	name := os.Getenv(probeVariable)
	if name == "" {
		probing.Store(true)
		return
	}
	_ = os.Unsetenv(probeVariable) // a child of the library is not one of ours
	crashAtOnce()
	os.Exit(serveProbe(name, os.Args[1:], os.NewFile(3, "verdict")))
}

// Probing says whether ProbeInChild was called, as programs do that keep in the user's cache folder
// what they find out about libraries.
func Probing() bool { return probing.Load() }

// report is a line that the child writes: the step that it begins on a file, or
// what became of the file.
type report struct {
	File    string `json:"file"`
	Step    string `json:"step,omitempty"`
	Done    bool   `json:"done,omitempty"`
	Used    bool   `json:"used,omitempty"`
	Path    string `json:"path,omitempty"`    // of a library that can be used
	Warning string `json:"warning,omitempty"` // empty for a file that is absent
}

// serveProbe tries files in order up to the first that can be used.
func serveProbe(name string, files []string, out io.Writer) int {
	enc := json.NewEncoder(out)
	for _, s := range librarySpecs {
		if s.name != name {
			continue
		}
		oneThread()
		for _, f := range files {
			b, warning := s.try(f, func(step string) { _ = enc.Encode(report{File: f, Step: step}) })
			r := report{File: f, Done: true, Used: b != nil, Warning: warning}
			if b != nil {
				if h, ok := b.(gemm.HalfBackend); ok {
					_ = enc.Encode(report{File: f, Step: "its self-test in bfloat16"})
					h.SupportsBF16()
				}
				_, r.Path = b.Info()
			}
			if enc.Encode(r) != nil {
				return 1
			}
			if b != nil {
				break
			}
		}
	}
	return 0
}

// verdict is what became of a file in the child.
type verdict struct {
	File    string `json:"file"`
	Used    bool   `json:"used,omitempty"`
	Path    string `json:"path,omitempty"`
	Warning string `json:"warning,omitempty"`
	passing bool   // may be another one the next time
}

// probe tries the files of s in children, each up to the first file that kills it,
// and returns the verdicts up to the first library that can be used. An error means
// that no child could be run.
func (s librarySpec) probe(files []string) ([]verdict, error) {
	var out []verdict
	for len(files) > 0 {
		got, err := s.probeOnce(files)
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
		if got[len(got)-1].Used {
			break
		}
		files = files[len(got):]
	}
	return out, nil
}

// probeOnce runs one child. It returns at least one verdict or an error.
func (s librarySpec) probeOnce(files []string) ([]verdict, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	c := exec.CommandContext(ctx, self, files...)
	c.Env = append(os.Environ(), probeVariable+"="+s.name)
	c.ExtraFiles = []*os.File{w}
	var messages bytes.Buffer
	c.Stderr = &limitedBuffer{&messages, 4096}
	c.WaitDelay = time.Second
	err = c.Start()
	w.Close()
	if err != nil {
		return nil, err
	}
	// A grandchild that holds the pipe must not hold us.
	_ = r.SetReadDeadline(time.Now().Add(probeTimeout + time.Second))
	var out []verdict
	var last report
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var line report
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		last = line
		if line.Done {
			out = append(out, verdict{File: line.File, Used: line.Used, Path: line.Path, Warning: line.Warning})
		}
	}
	err = c.Wait()
	if len(out) == len(files) || len(out) > 0 && out[len(out)-1].Used {
		return out, nil
	}
	if last.Done { // what came after a verdict is the doing of a file that is not used
		return out, nil
	}
	if last.File == "" {
		return nil, errors.Join(errors.New("the child process tried nothing"), err)
	}
	how, passing := "ended a trial process (exit status 0)", false
	switch {
	case ctx.Err() != nil:
		how, passing = fmt.Sprintf("gave no answer within %v", probeTimeout), true
	case err != nil:
		how, passing = "ended a trial process ("+err.Error()+")", fromOutside(c.ProcessState)
	}
	if line := firstLine(messages.String()); line != "" {
		how += ", which said " + line
	}
	warning := fmt.Sprintf("%s is not used: %s %s: remove or replace the file, or name another with %s", last.File, last.Step, how, s.env)
	return append(out, verdict{File: last.File, Warning: warning, passing: passing}), nil
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
