//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
)

// Variables of the processes that tests start: the fault that one ends by, and how locks of its file system work
// (files.SimulateFlock).
const (
	faultVariable = "GEOALIGN_TEST_FAULT"
	flockVariable = "GEOALIGN_TEST_FLOCK"
)

// fault ends the process by a fault of Go.
func fault(kind string) {
	time.Sleep(300 * time.Millisecond) // the program has begun
	switch kind {
	case "panic":
		panic("a fault")
	case "stack overflow":
		debug.SetMaxStack(16 << 20)
		var deep func(n int) int
		deep = func(n int) int { return deep(n+1) + n }
		deep(0)
	case "concurrent map writes":
		m := map[int]int{}
		for range 8 {
			go func() {
				for i := 0; ; i++ {
					m[i%100]++
				}
			}()
		}
	case "out of memory":
		var all [][]byte
		for {
			all = append(all, make([]byte, 64<<20))
			runtime.KeepAlive(all)
		}
	case "nil":
		var p *[1 << 20]int
		p[1<<19] = 1
	}
}

// TestFaults: a fault of Go ends the program by SIGABRT, 134 for a shell, and not with the code of a bad
// configuration; it leaves no core dump, and as the first process of a container it ends with that code.
func TestFaults(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the limits are those of Linux")
	}
	bin := binary(t)
	for kind, said := range map[string]string{
		"panic": "panic: a fault", "stack overflow": "goroutine stack exceeds", "concurrent map writes": "concurrent map", "out of memory": "out of memory", "nil": "nil pointer dereference",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Setenv(faultVariable, kind)
			dir := t.TempDir()
			config := check.Get(filepath.Abs(tiny))(t)
			args := []string{"-c", `ulimit -c unlimited 2>/dev/null; ulimit -v 6000000; "$0" "$@"; exit $?`, bin, "train", "--config", config, "--out", "run", "--max-steps", "100000", "--set", "train.save_every_steps=0", "--set", "train.eval_every_steps=0"}
			cmd := exec.Command("sh", args...)
			cmd.Dir = dir
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			_ = cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != exitSignal+int(syscall.SIGABRT) || !strings.Contains(out.String(), said) || !strings.Contains(out.String(), "goroutine ") {
				t.Errorf("exit code %d: %.3000s", code, out.String())
			}
			if cores, _ := filepath.Glob(filepath.Join(dir, "core*")); len(cores) > 0 {
				t.Errorf("core dumps: %q", cores)
			}
		})
	}
}

// TestFirstProcess: as the first process of a container the program has the exit codes that it has elsewhere, and a
// signal that asks it to stop is passed on.
func TestFirstProcess(t *testing.T) {
	bin := binary(t)
	first := func(env string, args ...string) *exec.Cmd {
		cmd := exec.Command("unshare", append([]string{"--user", "--map-root-user", "--fork", "--pid", "--mount-proc", bin}, args...)...)
		cmd.Env = append(os.Environ(), faultVariable+"="+env)
		return cmd
	}
	if err := first("", "--help").Run(); err != nil {
		t.Skipf("no namespaces of processes here: %v", err)
	}
	long := tinyArgs(t.TempDir(), "--max-steps", "100000", "--set", "train.eval_every_steps=0")
	for _, c := range []struct {
		env  string
		args []string
		code int
	}{
		{"", []string{"--version"}, exitDone}, {"", []string{"train", "--nothing"}, exitUsage}, {"", []string{"inspect", "nothing"}, exitFailed}, {"panic", long, exitSignal + int(syscall.SIGABRT)},
	} {
		cmd := first(c.env, c.args...)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.code {
			t.Errorf("%q: exit code %d, want %d: %.2000s", c.args, code, c.code, out)
		}
	}
	dir := t.TempDir()
	cmd := first("", tinyArgs(dir, append([]string{"--max-steps", "100000", "--set", "train.log_every_steps=1"}, rarely...)...)...)
	check.OK(t, cmd.Start())
	for limit := time.Now().Add(time.Minute); lastRow(dir) < 1 && time.Now().Before(limit); {
		time.Sleep(time.Millisecond)
	}
	children, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "task", strconv.Itoa(cmd.Process.Pid), "children"))
	pid, perr := strconv.Atoi(strings.TrimSpace(string(children)))
	if err != nil || perr != nil {
		_ = cmd.Process.Kill()
		t.Fatal(err, perr)
	}
	check.OK(t, syscall.Kill(pid, syscall.SIGTERM))
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != exitInterrupted || newest(t, dir) != lastRow(dir) {
		t.Errorf("SIGTERM: exit code %d, saved at step %d of %d", cmd.ProcessState.ExitCode(), newest(t, dir), lastRow(dir))
	}
}
