package cpu

import (
	"bufio"
	"os"
	"runtime"
	"strings"
	"sync"
)

// Model returns the processor's name where the system tells it in /proc/cpuinfo, else the
// architecture.
var Model = sync.OnceValue(func() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if k, v, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return runtime.GOARCH
})
