package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
)

// A pipe instead of a file is damage, which nobody waits for.
func TestPipeInPlaceOfFile(t *testing.T) {
	for name, want := range map[string]int{latestName: 20, "step-00000020/" + manifestName: 10,
		"step-00000020/model.safetensors": 10} {
		dir := t.TempDir()
		save(t, newStore(t, dir, Retention{}), 10, 20)
		path := filepath.Join(dir, name)
		check.OK(t, os.Remove(path))
		if err := syscall.Mkfifo(path, 0o644); err != nil {
			t.Skip(err)
		}
		type result struct {
			step     int
			notice   string
			verified string
			err      error
		}
		done := make(chan result, 1)
		go func() {
			var r result
			c, err := Load(dir)
			if r.err = err; err == nil {
				r.step, r.notice = c.Step, c.Notice
				c.Close()
			}
			if list, err := Verify(dir); err == nil {
				r.verified = list[len(list)-1].Problem
			}
			done <- r
		}()
		select {
		case r := <-done:
			if r.err != nil || r.step != want || r.notice == "" {
				t.Errorf("%s: step %d with the notice %q: %v", name, r.step, r.notice, r.err)
			}
			if want == 10 && !strings.Contains(r.verified, path+" is a pipe") {
				t.Errorf("%s: verified as %q", name, r.verified)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s is waited for", name)
		}
	}
}
