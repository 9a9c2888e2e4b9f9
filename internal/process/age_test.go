package process

import (
	"testing"
	"time"
)

func TestAge(t *testing.T) {
	// Fields as in proc_pid_stat(5): the 22nd is 12345 ticks of 1/100 s.
	const stat = "7 (a b) c) S 1 7 7 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 12345 1000 20"
	for _, r := range []struct {
		stat, uptime string
		want         time.Duration
		ok           bool
	}{
		{stat, "125.45 200.00\n", 2 * time.Second, true},
		{stat, "100.00 200.00\n", 0, false}, // before its start
		{stat, "", 0, false},
		{stat, "x y", 0, false},
		{"7 (a) S 1 2", "125.45 1", 0, false},
		{"", "125.45 1", 0, false},
	} {
		got, ok := processAge(r.stat, r.uptime)
		if ok != r.ok || (got-r.want).Abs() > time.Millisecond {
			t.Errorf("%q, %q: %v %v, want %v %v", r.stat, r.uptime, got, ok, r.want, r.ok)
		}
	}
	time.Sleep(20 * time.Millisecond) // ages are counted in hundredths of a second
	if d := Age(); d <= 0 || d > 24*time.Hour {
		t.Errorf("this process is %v old", d)
	}
}
