package main

import (
	"context"
	"errors"
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
	for i := 0; s.limits < c.n && s.wrong.n < c.n; i++ { // what only fails ends too
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
	c.say("%d limits in runs of %d steps, of which %d ended the process: %d failures", s.limits, c.steps, s.ended,
		s.wrong.n)
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

// noMemory is how a process without memory ends: by a message of ours or of the Go runtime, or by a
// crash of the runtime or of a library of products, which do not look at all that they were given. A
// panic of our own code is no such end.
var noMemory = regexp.MustCompile(`(?m)out of memory|cannot allocate memory|pthread_create failed|^fatal error|^SIG(SEGV|ABRT|BUS)`)

// session starts the run and limits its memory. done says that the run came to its end.
func (s *starving) session(dir string) (done bool, out string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd, b := s.command(ctx, dir, s.killable()...)
	if err := cmd.Start(); err != nil {
		return false, "", err
	}
	pid := cmd.Process.Pid
	after, more := shortest+time.Duration(s.rand.Int64N(int64(spread))), uint64(s.rand.Int64N(room))
	type outcome struct {
		limited bool
		err     error
	}
	told := make(chan outcome, 1)
	timer := time.AfterFunc(after, func() {
		limited, err := takeMemory(pid, more)
		told <- outcome{limited, err}
	})
	err = cmd.Wait()
	if !timer.Stop() {
		o := <-told
		if o.err != nil {
			return false, b.String(), o.err
		}
		if o.limited {
			s.limits++
		}
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

// takeMemory lets a process have so many bytes more than it has and no others. It reports whether there was still a
// process to do that to.
func takeMemory(pid int, more uint64) (limited bool, err error) {
	has, err := privateMemory(pid)
	if err != nil {
		return false, nil
	}
	limit := has + more
	err = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: limit, Max: limit}, nil)
	if errors.Is(err, unix.ESRCH) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("limits of memory cannot be set here: %w", err)
	}
	return true, nil
}

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
