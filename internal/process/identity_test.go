package process

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
)

// TestAlive: a process goes on until it ends, also where nobody has waited for it yet, and a number that was given again is another process.
func TestAlive(t *testing.T) {
	self := Self()
	if self.PID != os.Getpid() || !Alive(self.PID, self.Started) || !self.SameMachine(self) {
		t.Errorf("this process does not go on: %+v", self)
	}
	for _, pid := range []int{0, -1, 1 << 30} {
		if Alive(pid, "") {
			t.Errorf("process %d goes on", pid)
		}
	}
	if runtime.GOOS != "linux" {
		t.Skip("the start of a process is read on Linux alone")
	}
	if self.Boot == "" || self.Namespace == "" || self.Started == "" {
		t.Errorf("not all is known of this process: %+v", self)
	}
	if Alive(self.PID, self.Started+"0") {
		t.Error("a process of the same number that began at another time goes on")
	}
	if b := Booted(); b.IsZero() || b.After(time.Now().Add(-Age()+time.Second)) {
		t.Errorf("the machine started at %v, this process %v ago", b, Age())
	}
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	if !Alive(cmd.Process.Pid, "") {
		t.Error("a process that sleeps has ended")
	}
	check.OK(t, cmd.Process.Kill())
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) { // until it is a zombie
		b, err := os.ReadFile(procStat(cmd.Process.Pid))
		if err != nil || strings.Contains(string(b), ") Z ") || time.Now().After(end) {
			break
		}
	}
	if Alive(cmd.Process.Pid, "") {
		t.Error("a process that was killed and not waited for goes on")
	}
	_ = cmd.Wait()
	if Alive(cmd.Process.Pid, "") {
		t.Error("a process that was killed goes on")
	}
}

func TestSameMachine(t *testing.T) {
	for _, c := range []struct {
		a, b Identity
		want bool
	}{
		{Identity{Host: "a", Boot: "1"}, Identity{Host: "b", Boot: "1"}, true}, // containers
		{Identity{Host: "a", Boot: "1"}, Identity{Host: "a", Boot: "2"}, false},
		{Identity{Host: "a"}, Identity{Host: "a"}, true},
		{Identity{Host: "a"}, Identity{Host: "b"}, false},
		{Identity{Host: "a", Boot: "1"}, Identity{Host: "a"}, false},
	} {
		if got := c.a.SameMachine(c.b); got != c.want {
			t.Errorf("%+v and %+v: %v", c.a, c.b, got)
		}
	}
}
