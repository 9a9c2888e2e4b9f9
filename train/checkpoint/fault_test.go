package checkpoint

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
)

// disk counts operations and fails from number left on, as a full disk does.
type disk struct {
	left int
	err  error
}

func (d *disk) use() error {
	if d.left--; d.left < 0 {
		return d.err
	}
	return nil
}

// create is a Store.create on the disk.
func (d *disk) create(path string) (file, error) {
	if err := d.use(); err != nil {
		return nil, err
	}
	f, err := os.Create(path)
	return &faulty{f, d}, err
}

type faulty struct {
	*os.File
	d *disk
}

func (f *faulty) Write(p []byte) (int, error) {
	if err := f.d.use(); err != nil {
		n, _ := f.File.Write(p[:len(p)/2]) // a short write, as the real thing
		return n, &os.PathError{Op: "write", Path: f.Name(), Err: err}
	}
	return f.File.Write(p)
}

func (f *faulty) Sync() error {
	if err := f.d.use(); err != nil {
		return err
	}
	return f.File.Sync()
}

// Every operation of a save is made to fail in turn.
func TestDiskFull(t *testing.T) {
	for _, replace := range []bool{false, true} {
		for left := 0; ; left++ {
			dir := t.TempDir()
			s := newStore(t, dir, Retention{})
			save(t, s, 10, 20)
			step := 30
			if replace {
				step = 20
			}
			s.create = (&disk{left: left, err: syscall.ENOSPC}).create
			err := s.Save(step, snapshot(step+1))
			if err == nil {
				if left < 10 {
					t.Errorf("a save took only %d operations", left)
				}
				break
			}
			if !strings.Contains(err.Error(), "free space") || !strings.Contains(err.Error(), "no space left") {
				t.Errorf("operation %d: got %v", left, err)
			}
			c := load(t, dir)
			if c.Step != 20 || c.Notice != "" {
				t.Errorf("operation %d: latest is step %d, notice %q", left, c.Step, c.Notice)
			}
			want := []string{"latest", "step-00000010", "step-00000020"}
			got := make([]float32, 30000)
			if err := c.ReadFloat32("model", "a/weight", []int{3, 10000}, got); err != nil ||
				!reflect.DeepEqual(got, weights(20)) {
				t.Errorf("operation %d: the earlier checkpoint changed (%v)", left, err)
			}
			if got := names(t, dir); !reflect.DeepEqual(got, want) {
				t.Errorf("operation %d: left %v, want %v", left, got, want)
			}
		}
	}
}

func TestLeftoversAreCleared(t *testing.T) {
	dir := t.TempDir()
	save(t, newStore(t, dir, Retention{}), 10, 20)
	for _, name := range []string{".tmp-step-00000030", ".tmp-removed-step-00000005", ".old-step-00000010"} {
		check.OK(t, os.MkdirAll(filepath.Join(dir, name, "deep"), 0o777))
	}
	check.OK(t, os.WriteFile(filepath.Join(dir, ".tmp-latest"), []byte("st"), 0o666))
	// Killed between setting step 20 aside and publishing its replacement.
	check.OK(t, os.Rename(filepath.Join(dir, "step-00000020"), filepath.Join(dir, ".old-step-00000020")))
	newStore(t, dir, Retention{})
	if got, want := names(t, dir), []string{"latest", "step-00000010", "step-00000020"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if c := load(t, dir); c.Step != 20 || c.Notice != "" {
		t.Errorf("step %d, notice %q", c.Step, c.Notice)
	}
}

// A save whose folder has its name is the newest one, though the process was killed before it
// moved latest; one whose folder has not is none, though latest was about to move.
func TestKilledBeforeLatestMoves(t *testing.T) {
	for _, published := range []bool{true, false} {
		dir := t.TempDir()
		save(t, newStore(t, dir, Retention{}), 10, 20, 30)
		if !published { // a save of step 30 anew, after the run went back
			check.OK(t, os.Mkdir(filepath.Join(dir, ".tmp-step-00000030"), 0o777))
		}
		for name, step := range map[string]string{"latest": "step-00000020\n", ".tmp-latest": "step-00000030\n"} {
			check.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(step), 0o666))
		}
		want := 20
		if published {
			want = 30
		}
		for range 2 { // for a reader, and for the run that goes on
			if c := load(t, dir); c.Step != want || c.Notice != "" {
				t.Errorf("published %v: step %d, notice %q, want step %d", published, c.Step, c.Notice, want)
			}
			newStore(t, dir, Retention{})
			if got, list := names(t, dir), []string{"latest", "step-00000010", "step-00000020",
				"step-00000030"}; !reflect.DeepEqual(got, list) {
				t.Errorf("published %v: left %v", published, got)
			}
		}
	}
}

// A process that saves all the time is killed; whatever it leaves must load.
func TestKilledWhileSaving(t *testing.T) {
	if dir := os.Getenv("CHECKPOINT_TEST_DIR"); dir != "" {
		s := newStore(t, dir, Retention{Last: 2})
		for step := 1; ; step++ {
			save(t, s, step)
			check.Get(s.Prune())(t)
			fmt.Println("saved")
		}
	}
	if testing.Short() {
		t.Skip("starts processes")
	}
	for i := range 4 {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWhileSaving$")
		cmd.Env = append(os.Environ(), "CHECKPOINT_TEST_DIR="+dir)
		out := check.Get(cmd.StdoutPipe())(t)
		check.OK(t, cmd.Start())
		if _, err := out.Read(make([]byte, 6)); err != nil { // at least one save is done
			t.Fatal(err)
		}
		time.Sleep(time.Duration(7+13*i) * time.Millisecond)
		check.OK(t, cmd.Process.Kill())
		cmd.Wait() // always reports the kill

		newStore(t, dir, Retention{})
		c := load(t, dir)
		got := make([]float32, 30000)
		if err := c.ReadFloat32("model", "a/weight", []int{3, 10000}, got); err != nil ||
			!reflect.DeepEqual(got, weights(c.Step)) {
			t.Errorf("step %d is not whole (%v)", c.Step, err)
		}
		for _, n := range names(t, dir) {
			if strings.HasPrefix(n, ".") {
				t.Errorf("leftover %s", n)
			}
		}
	}
}
