package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// writers are command lines that write into a finished run.
var writers = [][]string{
	{"embed", "--checkpoint", "run", "--out", "features"},
	{"report", "run"},
}

// disk has runs and commands meet a full disk at random places: a file system in memory of a
// size between nothing and what a run takes. Each must end with an error that says so and
// leave earlier checkpoints whole, and where nothing may be written say that; with more room the
// run must end as one that had it from the start.
func (c *campaign) disk() error {
	run := c.train("--max-steps", "20")
	if _, err := c.done(c.dir, run...); err != nil {
		return err
	}
	whole := filepath.Join(c.dir, "run")
	need, err := size(whole)
	if err != nil {
		return err
	}
	var wrong failures
	full := 0
	for i := range c.n {
		dir := filepath.Join(c.dir, "full")
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
		first, room := run, 4096*(1+c.rand.Int64N(need/4096*11/10))
		if i%2 == 1 { // the small files, without what takes most of the room
			first, room = append(run, "--set", "train.save_every_steps=0"), 4096*(1+c.rand.Int64N(40))
		}
		if err := mount(dir, "", room); err != nil {
			return fmt.Errorf("%w: run it as root, or within unshare --map-root-user --mount", err)
		}
		met, err := c.fill(dir, whole, room, first, run, writers[i/2%len(writers)])
		if err != nil {
			wrong.add("with room for %d bytes: %v", room, err)
		}
		full += met
		if err := exec.Command("umount", dir).Run(); err != nil {
			return fmt.Errorf("umount %s: %w", dir, err)
		}
	}
	c.say("a run takes %d bytes; %d file systems of random sizes were full %d times: %d failures", need, c.n, full,
		wrong.n)
	return wrong.err()
}

// fill makes the first attempt at a run on the file system at dir, which has room bytes and is
// read-only to begin with, completes it with more room and has writer find little. It counts how
// often the disk was full.
func (c *campaign) fill(dir, whole string, room int64, first, run, writer []string) (full int, err error) {
	if err := c.refused(dir, room, first); err != nil {
		return 0, err
	}
	met, err := c.meets(dir, first)
	if err != nil {
		return 0, err
	}
	if met {
		full++
		if _, err := newestWhole(filepath.Join(dir, "run"), 0); err != nil {
			return full, fmt.Errorf("after the disk was full: %w", err)
		}
	}
	if err := mount(dir, "remount,", 1<<30); err != nil {
		return full, err
	}
	if _, err := c.done(dir, run...); err != nil {
		return full, err
	}
	if err := sameRun(filepath.Join(dir, "run"), whole); err != nil {
		return full, err
	}
	used, err := size(dir)
	if err != nil {
		return full, err
	}
	if err := mount(dir, "remount,", used+4096*c.rand.Int64N(64)); err != nil {
		return full, err
	}
	if met, err = c.meets(dir, writer); met {
		full++
	}
	return full, err
}

// refused runs a command where nothing may be written: it must say so, and what to do, at once.
func (c *campaign) refused(dir string, room int64, args []string) error {
	if err := mount(dir, "remount,ro,", room); err != nil {
		return err
	}
	code, out, err := c.trainer(dir, args...)
	err = errors.Join(err, mount(dir, "remount,rw,", room))
	if err == nil && (code != 1 || !strings.Contains(out, "read-only file system") ||
		!strings.Contains(out, "choose another")) {
		err = fmt.Errorf("%q where nothing may be written ended with %d:\n%s", args, code, tail(out))
	}
	return err
}

// meets runs a command and reports whether it met a full disk: it must say so and what to do.
func (c *campaign) meets(dir string, args []string) (full bool, err error) {
	code, out, err := c.trainer(dir, args...)
	switch {
	case err != nil || code == 0 && !strings.Contains(out, "no space left"):
		return false, err
	case code > 1 || !strings.Contains(out, "no space left") || !strings.Contains(out, "choose another"):
		return true, fmt.Errorf("%q ended with %d:\n%s", args, code, tail(out))
	}
	return true, nil
}

// errMount is wrapped by the error of mount.
var errMount = errors.New("mount")

// mount mounts a file system in memory of room bytes at dir; how begins its options.
func mount(dir, how string, room int64) error {
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("%ssize=%d", how, room), "campaign",
		dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %w: %s", errMount, err, out)
	}
	return nil
}

// size returns the bytes of the pages that the files and folders below dir take.
func size(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			sum += (info.Size() + 4095) / 4096 * 4096
		}
		return err
	})
	return sum, err
}
