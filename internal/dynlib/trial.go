package dynlib

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// probeTimeout is how long a library may take to load, or to do a small
// task, before it counts as broken.
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
	do := servants[name]
	if do == nil {
		os.Exit(0)
	}
	go endAfter(os.Getppid())
	os.Exit(do(os.Args[1:], os.Stdin, os.NewFile(3, "answers")))
}

// endAfter ends this process when its parent has ended: what hangs in a library would go on for ever without the one
// that limits its time.
func endAfter(parent int) {
	for os.Getppid() == parent {
		time.Sleep(time.Second)
	}
	os.Exit(1)
}

// Probing says whether libraries are tried in a child process, as in programs that keep in the user's
// cache folder what they find out about libraries.
func Probing() bool { return probing.Load() }

// SetProbing turns the trial in a child process on or off: for tests, whose main begins with ProbeInChild.
func SetProbing(on bool) { probing.Store(on) }

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

// Trial says how to find one library.
type Trial struct {
	Name  string   // what the child is told
	Env   string   // variable that may name the file
	Files []string // to look for
	// Try loads and tests a file. It returns what the file is good for, nil if it is not, and a warning,
	// empty for a file that is absent and that nobody has named. begin is told each step before it is taken.
	Try func(file string, begin func(step string)) (use any, warning string)
	// Path is the file of what Try returns, as the loader resolved it.
	Path func(use any) string
}

// Register makes a trial known to the child process and returns it. It is for variables of packages.
func Register(t Trial) Trial {
	Serve(t.Name, func(files []string, _ io.Reader, out io.Writer) int { return t.serve(files, out) })
	return t
}

// Find tries the file that the variable names, then the usual ones, and returns what the first that
// can be used is good for, nil if there is none, and what to warn of.
func (t Trial) Find() (use any, warnings []string) {
	files := t.Files
	if f := os.Getenv(t.Env); f != "" {
		files = append([]string{f}, files...)
	}
	verdicts := map[string]verdict{}
	if probing.Load() {
		// Without a child there is no protection, but the library may be sound.
		tried, _ := t.tried(files)
		for _, v := range tried {
			verdicts[v.File] = v
		}
	}
	for _, f := range files {
		v := verdicts[f]
		use, warning := any(nil), v.Warning
		if v.Used || len(verdicts) == 0 {
			use, warning = t.Try(f, func(string) {})
		}
		if warning != "" {
			warnings = append(warnings, warning)
		}
		if use != nil {
			return use, warnings
		}
	}
	return nil, warnings
}

// Load opens a file for Try: without a library there is a warning, unless the file is an absent one
// that nobody has named.
func (t Trial) Load(file string, begin func(step string)) (lib *Library, warning string) {
	begin("loading it")
	lib, err := Open(file)
	switch {
	case err == nil:
		return lib, ""
	case Absent(err) && file != os.Getenv(t.Env):
		return nil, ""
	}
	return nil, fmt.Sprintf("%s cannot be loaded: %v", file, err)
}

// serve tries files in order up to the first that can be used.
func (t Trial) serve(files []string, out io.Writer) int {
	enc := json.NewEncoder(out)
	for _, f := range files {
		begin := func(step string) { _ = enc.Encode(report{File: f, Step: step}) }
		use, warning := t.Try(f, begin)
		r := report{File: f, Done: true, Used: use != nil, Warning: warning}
		if use != nil {
			r.Path = t.Path(use)
		}
		if enc.Encode(r) != nil {
			return 1
		}
		if use != nil {
			break
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

// probe tries the files of t in children, each up to the first file that kills it,
// and returns the verdicts up to the first library that can be used. An error means
// that no child could be run.
func (t Trial) probe(files []string) ([]verdict, error) {
	var out []verdict
	for len(files) > 0 {
		got, err := t.probeOnce(files)
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
func (t Trial) probeOnce(files []string) ([]verdict, error) {
	c, err := Start(t.Name, files...)
	if err != nil {
		return nil, err
	}
	var out []verdict
	var last report
	for len(out) < len(files) {
		var line report
		err := c.Ask(nil, &line, probeTimeout)
		var end *EndedError
		switch {
		case err == nil:
			last = line
		case last.Done: // what came after a verdict is the doing of a file that is not used
			return out, nil
		case last.File == "":
			return nil, fmt.Errorf("the child process tried nothing: %w", err)
		case errors.As(err, &end):
			warning := fmt.Sprintf("%s is not used: %s %s: remove or replace the file, or name another with %s",
				last.File, last.Step, end.How, t.Env)
			return append(out, verdict{File: last.File, Warning: warning, passing: end.Late || end.Outside}), nil
		default:
			return nil, err
		}
		if !line.Done {
			continue
		}
		out = append(out, verdict{File: line.File, Used: line.Used, Path: line.Path, Warning: line.Warning})
		if line.Used {
			break
		}
	}
	c.Close()
	return out, nil
}
