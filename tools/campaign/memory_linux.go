package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func init() { campaigns["memory"] = (*campaign).memory }

// room is the most memory that a process gets beyond what it has when the limit comes.
const room = 4 << 20

// memory takes the memory away from runs: at a random moment a process may have little more than it
// has. Whatever the limit does to it, the run must go on from its newest whole checkpoint and end
// as one that was left alone.
func (c *campaign) memory() error {
	whole := filepath.Join(c.dir, "whole")
	if err := os.Mkdir(whole, 0o777); err != nil {
		return err
	}
	if _, err := c.done(whole, c.killable("--quiet")...); err != nil {
		return err
	}
	s := starving{campaign: c}
	for i := 0; s.limits < c.n; i++ {
		dir := filepath.Join(c.dir, fmt.Sprintf("starved-%d", i))
		if err := os.Mkdir(dir, 0o777); err != nil {
			return err
		}
		if err := s.oneRun(dir); err != nil {
			s.wrong.add("run %d: %v", i, err)
		} else if err := sameRun(filepath.Join(dir, "run"), filepath.Join(whole, "run")); err != nil {
			s.wrong.add("run %d: %v", i, err)
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	c.say("%d limits in runs of %d steps, of which %d ended the process: %d failures", s.limits, c.steps, s.ended, s.wrong.n)
	return s.wrong.err()
}

// starving counts what a memory campaign does.
type starving struct {
	*campaign
	limits, ended int
	wrong         failures
}

// oneRun trains a run to its end, with limits.
func (s *starving) oneRun(dir string) error {
	newest := 0
	for try := 0; ; try++ {
		if s.limits >= s.n || try == 20 { // a limit of some starts is less than what a step takes
			_, err := s.done(dir, s.killable()...)
			return err
		}
		done, out, err := s.session(dir)
		if err != nil || done {
			return err
		}
		if from, told := goneOnFrom(out); told && from < newest {
			return fmt.Errorf("went on from step %d with a whole checkpoint of step %d", from, newest)
		}
		if newest, err = newestWhole(filepath.Join(dir, "run"), newest); err != nil {
			return err
		}
	}
}

// noMemory is how a process says that it got none: the Go runtime for its heap and its threads, the
// system, or a crash within a library of products, which may not look at what it was given.
var noMemory = regexp.MustCompile(`out of memory|cannot allocate memory|failed to create new OS thread|pthread_create failed|external code execution|cgo execution|unknown pc`)

// session starts the run and limits its memory. done says that the run came to its end.
func (s *starving) session(dir string) (done bool, out string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd, b := s.command(ctx, dir, s.killable()...)
	if err := cmd.Start(); err != nil {
		return false, "", err
	}
	pid := cmd.Process.Pid
	limited := time.AfterFunc(shortest+time.Duration(s.rand.Int64N(int64(spread))), func() {
		if has, err := privateMemory(pid); err == nil {
			limit := has + uint64(s.rand.Int64N(room))
			unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: limit, Max: limit}, nil)
		}
	})
	err = cmd.Wait()
	if !limited.Stop() {
		s.limits++
	}
	out = b.String()
	switch {
	case err == nil:
		return true, out, nil
	case ctx.Err() != nil:
		return false, out, fmt.Errorf("hung:\n%s", tail(out))
	case !noMemory.MatchString(out) && cmd.ProcessState.ExitCode() >= 0:
		return false, out, fmt.Errorf("%v:\n%s", err, lastWords(out))
	}
	s.ended++
	return false, out, nil
}

// lastWords is what a process printed from where it began to die.
func lastWords(out string) string {
	if at := dying.FindStringIndex(out); at != nil {
		out = out[at[0]:]
	}
	return out[:min(len(out), 1500)]
}

var dying = regexp.MustCompile(`(?m)^(SIG|fatal error|panic|runtime:|unexpected fault|trainer: )`)

// privateMemory returns the bytes of a process that its limit counts.
func privateMemory(pid int) (uint64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, after, found := strings.Cut(string(text), "VmData:")
	fields := strings.Fields(after)
	if !found || len(fields) == 0 {
		return 0, fmt.Errorf("process %d has no VmData", pid)
	}
	kb, err := strconv.ParseUint(fields[0], 10, 64)
	return kb << 10, err
}
