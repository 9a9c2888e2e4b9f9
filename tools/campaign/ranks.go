package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// within is how long the other ranks of a run may live when one was killed, mpirun included. Tests shorten it.
var within = 30 * time.Second

// startup is what ranks take longer to start than one process.
const startup = 500 * time.Millisecond

// ranked returns the program as so many ranks of mpirun in the working folder dir.
func (c *campaign) ranked(ctx context.Context, dir string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd, out := c.command(ctx, dir)
	cmd.Path, cmd.Err = exec.LookPath("mpirun")
	cmd.Args = append([]string{"mpirun", "-n", strconv.Itoa(c.ranks), c.bin}, args...)
	// What Open MPI needs to start ranks as root and more of them than processors. Others do not read it.
	cmd.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
		"OMPI_MCA_rmaps_base_oversubscribe=1", "OMPI_MCA_hwloc_base_binding_policy=none")
	cmd.Cancel = func() error { // of one that hangs, all
		ranks, err := descendants(cmd.Process.Pid, c.bin)
		for _, pid := range ranks {
			if p, err := os.FindProcess(pid); err == nil {
				p.Kill()
			}
		}
		return errors.Join(err, cmd.Process.Kill())
	}
	return cmd, out
}

// killRank kills one of the ranks that a launcher has started, at random, and says whether there was one.
func (k *killing) killRank(launcher int) (killed bool, err error) {
	ranks, err := descendants(launcher, k.bin)
	if err != nil || len(ranks) == 0 {
		return false, err
	}
	p, err := os.FindProcess(ranks[k.rand.IntN(len(ranks))])
	if err != nil {
		return false, err
	}
	return p.Kill() == nil, nil
}

// descendants lists the processes below one that run a program.
func descendants(of int, program string) (list []int, err error) {
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return nil, err
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return nil, errors.Join(err, errors.New("processes cannot be listed: kills of ranks need Linux"))
	}
	parent := map[int]int{}
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state parent ...: the name may hold anything.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		pid, err1 := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		up, err2 := strconv.Atoi(fields[1])
		if err1 == nil && err2 == nil {
			parent[pid] = up
		}
	}
	for pid := range parent {
		at := pid
		for at != of && at > 1 {
			at = parent[at]
		}
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); at == of && err == nil && exe == program {
			list = append(list, pid)
		}
	}
	return list, nil
}
