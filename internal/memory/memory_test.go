package memory

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestMeminfo(t *testing.T) {
	const text = "Name:\ttrainer\nVmHWM:\t    1234 kB\nVmRSS:\t      10 kB\nBroken:\tx kB\nno colon\n"
	for key, want := range map[string]int64{"VmHWM": 1234 << 10, "VmRSS": 10 << 10, "Broken": 0, "VmSwap": 0, "Name": 0} {
		if got := meminfo([]byte(text), key); got != want {
			t.Errorf("%s is %d, want %d", key, got, want)
		}
	}
	if meminfo(nil, "VmHWM") != 0 {
		t.Error("a size from no text")
	}
}

// The paths and formats are those of the kernel's cgroup-v2.rst and cgroup-v1/memory.rst.
func TestGroupLimit(t *testing.T) {
	files := map[string]string{
		"/sys/fs/cgroup/a/b/memory.max":                   "max\n",
		"/sys/fs/cgroup/a/memory.max":                     "1000\n",
		"/sys/fs/cgroup/memory/c/memory.limit_in_bytes":   "500\n",
		"/sys/fs/cgroup/memory/memory.limit_in_bytes":     "9223372036854771712\n",
		"/sys/fs/cgroup/memory/bad/memory.limit_in_bytes": "none\n",
	}
	read := func(path string) []byte { return []byte(files[path]) }
	for groups, want := range map[string]int64{
		"":                             0,
		"0::/a/b\n":                    1000,
		"0::/a\n":                      1000,
		"0::/\n":                       0,
		"0::/other\n":                  0,
		"5:cpu,memory:/c\n0::/a/b\n":   500,
		"5:cpu:/c\n":                   0,
		"5:memory:/\n":                 0,
		"5:memory:/bad\n":              0,
		"garbage\n7\n0::/a\n":          1000,
		"4:memory:/c/d/e\n3:pids:/c\n": 500,
	} {
		if got := groupLimit([]byte(groups), read); got != want {
			t.Errorf("%q: limit %d, want %d", groups, got, want)
		}
	}
}

func TestThisProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	// What earlier tests freed is still resident until the runtime gives it back, and
	// a new block may lie in it.
	debug.FreeOSMemory()
	all, now, peak := Total(), Resident(), Peak()
	if all <= 0 || now <= 0 || peak < now/2 || now > all {
		t.Fatalf("total %d, resident %d, peak %d", all, now, peak)
	}
	const size = 64 << 20
	block := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		block[i] = 1
	}
	if grown := Peak(); grown < now+size/2 {
		t.Errorf("the peak went from %d to %d after touching %d bytes", peak, grown, size)
	}
	runtime.KeepAlive(block)
}
