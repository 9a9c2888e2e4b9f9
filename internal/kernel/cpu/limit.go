package cpu

import (
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Available returns the number of threads that can compute at once: GOMAXPROCS, for which Go counts the
// processors that this process may run on, and no more than Limit rounded up. (Go looks at the limit itself, but
// takes two threads where it is one, for its garbage collector.)
func Available() int { return available(runtime.GOMAXPROCS(0), Limit()) }

func available(threads int, limit float64) int {
	if limit > 0 {
		threads = min(threads, int(math.Ceil(limit)))
	}
	return max(1, threads)
}

// Limit returns how many processors' worth of time the control groups of this process may use, as a container
// is given; 0 where there is no limit or the system knows none.
func Limit() float64 { return limitIn("/") }

// limitIn is Limit with the files of a root folder. See cgroups(7): a group has what the groups around it leave it.
// Within a container the path of the group may be that outside, of which only the end of the way up is there.
func limitIn(root string) (limit float64) {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		var mounts []string
		switch {
		case fields[0] == "0" && fields[1] == "":
			mounts = []string{"sys/fs/cgroup"}
		case slices.Contains(strings.Split(fields[1], ","), "cpu"):
			mounts = []string{"sys/fs/cgroup/cpu", "sys/fs/cgroup/" + fields[1]}
		}
		for _, mount := range mounts {
			for at := path.Clean("/" + fields[2]); ; at = path.Dir(at) {
				if l := groupLimit(filepath.Join(root, mount, at)); l > 0 && (limit == 0 || l < limit) {
					limit = l
				}
				if at == "/" {
					break
				}
			}
		}
	}
	return limit
}

// groupLimit returns the limit that the folder of a group sets, 0 for none: quota over period, in version 2 in one
// file.
func groupLimit(dir string) float64 {
	quota, period := 0., 0.
	if text, err := os.ReadFile(filepath.Join(dir, "cpu.max")); err == nil {
		_, _ = fmt.Sscan(string(text), &quota, &period) // "max 100000" is not a number: no limit
	} else if text, err := os.ReadFile(filepath.Join(dir, "cpu.cfs_quota_us")); err == nil {
		_, _ = fmt.Sscan(string(text), &quota)
		text, _ = os.ReadFile(filepath.Join(dir, "cpu.cfs_period_us"))
		_, _ = fmt.Sscan(string(text), &period)
	}
	if quota > 0 && period > 0 {
		return quota / period
	}
	return 0
}
