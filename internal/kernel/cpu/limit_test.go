package cpu

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLimit(t *testing.T) {
	rows := []struct {
		name  string
		files map[string]string
		want  float64
	}{
		{"no control groups", nil, 0},
		{"no limit", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, 0},
		{"a container", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5},
		{"the group around it", map[string]string{"proc/self/cgroup": "0::/pod/job\n", "sys/fs/cgroup/pod/job/cpu.max": "400000 100000\n", "sys/fs/cgroup/pod/cpu.max": "200000 100000\n"}, 2},
		{"a path outside", map[string]string{"proc/self/cgroup": "0::/kubepods/x/y\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}, 0.5},
		{"version 1", map[string]string{"proc/self/cgroup": "5:memory:/a\n4:cpu,cpuacct:/docker/x\n0::/\n",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "300000\n", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n"}, 3},
		{"version 1 without a limit", map[string]string{"proc/self/cgroup": "4:cpu:/x\n", "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000\n"}, 0},
		{"damaged", map[string]string{"proc/self/cgroup": "0::/\n7\n", "sys/fs/cgroup/cpu.max": "100000\n"}, 0},
	}
	for _, r := range rows {
		root := t.TempDir()
		for name, text := range r.files {
			file := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if got := limitIn(root); got != r.want {
			t.Errorf("%s: got %g, want %g", r.name, got, r.want)
		}
	}
}

func TestAvailable(t *testing.T) {
	for _, r := range []struct {
		threads int
		limit   float64
		want    int
	}{{8, 0, 8}, {8, 1.5, 2}, {2, 1, 1}, {2, 0.5, 1}, {2, 64, 2}} {
		if got := available(r.threads, r.limit); got != r.want {
			t.Errorf("%d threads with a limit of %g: got %d, want %d", r.threads, r.limit, got, r.want)
		}
	}
	if n := Available(); n < 1 {
		t.Errorf("here: %d", n)
	}
}
