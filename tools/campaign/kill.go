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

	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

// A kill comes between shortest and shortest+spread after the start of the process.
const (
	shortest = 100 * time.Millisecond
	spread   = 1900 * time.Millisecond
)

// kill kills runs at random moments and starts them again until they end. It fails where a
// run goes on from less than the newest whole checkpoint, or ends otherwise than one that was
// left alone.
func (c *campaign) kill() error {
	whole := filepath.Join(c.dir, "whole")
	if err := os.Mkdir(whole, 0o777); err != nil {
		return err
	}
	begin := time.Now()
	if _, err := c.done(whole, c.killable("--quiet")...); err != nil {
		return err
	}
	c.say("a run that is left alone takes %.1f s", time.Since(begin).Seconds())
	k := killing{campaign: c, want: filepath.Join(whole, "run")}
	for k.kills < c.n && k.wrong.n < c.n { // what only fails ends too
		if err := k.oneRun(); err != nil {
			return err
		}
		c.say("%d kills in %d runs, %d before the first checkpoint, %d while a checkpoint was written; ended %.1f s after the kill at the latest; %d checkpoints lost, %d failures in all",
			k.kills, k.runs, k.early, k.saving, k.longest.Seconds(), k.lost, k.wrong.n)
	}
	return k.wrong.err()
}

// killable is the command line of the run.
func (c *campaign) killable(more ...string) []string {
	return c.train(append(more, "--max-steps", strconv.Itoa(c.steps))...)
}

// killing counts what a kill campaign does.
type killing struct {
	*campaign
	want string // the run that was left alone

	runs, kills   int
	early, saving int           // kills before there was a checkpoint, and with one half written
	lost          int           // checkpoints that were whole and not gone on from
	longest       time.Duration // from a kill to the end of the run
	wrong         failures
}

// oneRun trains one run to its end, with kills.
func (k *killing) oneRun() error {
	k.runs++
	dir := filepath.Join(k.dir, fmt.Sprintf("killed-%d", k.runs))
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	run, newest := filepath.Join(dir, "run"), 0
	for ended := false; !ended; {
		var out string
		var err error
		if k.kills < k.n {
			ended, out, err = k.session(dir)
		} else {
			ended = true
			out, err = k.done(dir, k.killable()...)
		}
		if err != nil {
			k.wrong.add("run %d: %v", k.runs, err)
			break
		}
		if from, told := goneOnFrom(out); told && from < newest {
			k.lost++
			k.wrong.add("run %d went on from step %d with a whole checkpoint of step %d", k.runs, from, newest)
		}
		if newest, err = newestWhole(run, newest); err != nil {
			k.lost++
			k.wrong.add("run %d: %v", k.runs, err)
		}
	}
	if err := sameRun(run, k.want); err != nil {
		k.wrong.add("run %d: %v", k.runs, err)
	}
	return os.RemoveAll(dir)
}

// session starts the run and kills it. It reports whether the run came to its end before.
func (k *killing) session(dir string) (ended bool, out string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd, b := k.start(ctx, dir, k.killable()...)
	if err := cmd.Start(); err != nil {
		return false, "", err
	}
	dead := make(chan error, 1)
	go func() { dead <- cmd.Wait() }()
	after, killed := shortest+time.Duration(k.rand.Int64N(int64(spread))), false
	if k.ranks > 1 {
		after += startup
	}
	select {
	case err = <-dead:
	case <-time.After(after):
		if killed, err = k.end(cmd.Process); err != nil {
			return false, "", err
		}
		if killed {
			k.kills++
		}
		begin := time.Now()
		err = <-dead
		if took := time.Since(begin); killed && took > within {
			return false, b.String(), fmt.Errorf("the others lived for %v after the kill", took)
		} else if killed {
			k.longest = max(k.longest, took)
		}
	}
	out = b.String()
	switch code := cmd.ProcessState.ExitCode(); {
	case ctx.Err() != nil:
		return false, out, fmt.Errorf("hung:\n%s", tail(out))
	case code == 0 && killed && k.ranks > 1:
		return false, out, fmt.Errorf("exit code 0 although a rank was killed:\n%s", tail(out))
	case code == 0:
		return true, out, nil
	case code > 0 && !(killed && k.ranks > 1) || crashed(out):
		return false, out, fmt.Errorf("%v:\n%s", err, tail(out))
	}
	left, _ := os.ReadDir(filepath.Join(dir, "run", runlog.CheckpointsDir))
	half := false
	for _, e := range left {
		half = half || strings.HasPrefix(e.Name(), ".")
	}
	switch {
	case half:
		k.saving++
	case len(left) == 0:
		k.early++
	}
	return false, out, nil
}

// end kills the run, or one of its ranks, and says whether there was something to kill.
func (k *killing) end(p *os.Process) (killed bool, err error) {
	if k.ranks > 1 {
		return k.killRank(p.Pid)
	}
	return p.Kill() == nil, nil
}

var goingOn = regexp.MustCompile(`going on from step (\d+) of`)

// goneOnFrom returns the step that a run said to go on from.
func goneOnFrom(out string) (step int, told bool) {
	m := goingOn.FindStringSubmatch(out)
	if m == nil {
		return 0, false
	}
	step, err := strconv.Atoi(m[1])
	return step, err == nil
}

// newestWhole reads every byte of the checkpoints of a run and returns the newest step that is
// whole, whatever the run thinks of it: 0 for none. It must be atLeast what was there before.
func newestWhole(run string, atLeast int) (step int, err error) {
	folder := filepath.Join(run, runlog.CheckpointsDir)
	if _, err := os.Stat(folder); os.IsNotExist(err) && atLeast == 0 {
		return 0, nil
	}
	names, err := os.ReadDir(folder)
	if err != nil {
		return atLeast, err
	}
	for _, e := range names {
		if strings.HasPrefix(e.Name(), ".") || !e.IsDir() {
			continue
		}
		ck, err := checkpoint.Load(filepath.Join(folder, e.Name()))
		if err != nil {
			return atLeast, err // a kill must not leave a folder under this name that is not whole
		}
		step = max(step, ck.Step)
		ck.Close()
	}
	if step < atLeast {
		return atLeast, fmt.Errorf("the checkpoint of step %d is gone: the newest is of step %d", atLeast, step)
	}
	return step, nil
}
