package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
)

// hangs is the environment in which this program is a rank that hangs.
const hangs = "GEOALIGN_CAMPAIGN_HANGS"

func TestMain(m *testing.M) {
	if os.Getenv(hangs) != "" {
		time.Sleep(time.Minute)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestRanksThatLiveOn: where the other rank does not end when one is killed, the campaign does, and says so.
func TestRanksThatLiveOn(t *testing.T) {
	bin := check.Get(os.Executable())(t)
	path := t.TempDir()
	check.OK(t, os.WriteFile(filepath.Join(path, "mpirun"), []byte("#!/bin/sh\nshift 2\n\"$@\" &\n\"$@\" &\nwait\n"),
		0o755))
	t.Setenv("PATH", path+":"+os.Getenv("PATH"))
	t.Setenv(hangs, "1")
	old, long := within, patience
	within, patience = 100*time.Millisecond, 4*time.Second
	t.Cleanup(func() { within, patience = old, long })
	k := killing{campaign: &campaign{n: 1, steps: 1, ranks: 2, bin: bin, log: io.Discard, rand: newRand(1)}}
	begin := time.Now()
	if _, _, err := k.session(t.TempDir()); err == nil || !strings.Contains(err.Error(), "the others lived for") ||
		k.kills != 1 || time.Since(begin) > 20*time.Second {
		t.Errorf("%v after %v, %d kills", err, time.Since(begin), k.kills)
	}
}

// TestTakeMemory limits a process that lives, and does not count one that has ended.
func TestTakeMemory(t *testing.T) {
	for _, lives := range []bool{true, false} {
		cmd := exec.Command("sleep", "60")
		check.OK(t, cmd.Start())
		if !lives {
			cmd.Process.Kill()
			cmd.Wait()
		}
		if limited, err := takeMemory(cmd.Process.Pid, 1<<20); limited != lives || err != nil {
			t.Errorf("a process that lives (%t) is limited: %t, %v", lives, limited, err)
		}
		if lives {
			cmd.Process.Kill()
			cmd.Wait()
		}
	}
}
