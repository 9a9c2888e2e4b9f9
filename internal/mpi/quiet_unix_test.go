//go:build (linux || darwin) && (amd64 || arm64) && !static

package mpi

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/dynlib"
)

// TestQuietly: handlers that C code installs are gone afterwards, and signals come as before.
func TestQuietly(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR2)
	defer signal.Stop(c)
	blocked := func() (mask [128]byte) { // of this thread
		dynlib.Call(dynlib.Libc("pthread_sigmask"), 0, 0, base(mask[:]))
		return mask
	}
	before := blocked()
	failed := errors.New("failed")
	err := quietly(func() error {
		const ignore = 1 // SIG_IGN
		dynlib.Call(dynlib.Libc("signal"), uintptr(syscall.SIGUSR2), ignore)
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	if blocked() != before {
		t.Error("other signals are blocked than before")
	}
	check.OK(t, syscall.Kill(os.Getpid(), syscall.SIGUSR2))
	select {
	case <-c:
	case <-time.After(5 * time.Second):
		t.Error("the signal is still ignored")
	}
}

// TestSetenv: a variable that the user has set stays.
func TestSetenv(t *testing.T) {
	get := func(name string) string {
		b := append([]byte(name), 0)
		p := dynlib.Call(dynlib.Libc("getenv"), base(b))
		if p == 0 {
			return ""
		}
		b = make([]byte, 8)
		dynlib.Call(dynlib.Libc("strncpy"), base(b), p, 7)
		n := 0
		for b[n] != 0 {
			n++
		}
		return string(b[:n])
	}
	for _, value := range []string{"first", "second"} {
		check.OK(t, dynlib.SetEnv("GEOALIGN_MPI_SETENV", value, false))
	}
	if got := get("GEOALIGN_MPI_SETENV"); got != "first" {
		t.Errorf("%q", got)
	}
}
