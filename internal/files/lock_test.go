package files

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/process"
)

// holderVariable has the test binary lock the folder that it names, say so, and wait for the end of its input.
const holderVariable = "GEOALIGN_TEST_HOLD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holderVariable); dir != "" {
		SimulateFlock(os.Getenv("GEOALIGN_TEST_FLOCK"))
		l, err := Lock(dir, func(format string, args ...any) { fmt.Printf(format+"\n", args...) })
		if err != nil {
			fmt.Println("refused:", err)
			os.Exit(1)
		}
		fmt.Println("locked")
		io.Copy(io.Discard, os.Stdin)
		if err := l.Release(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// holder is a process that tries to lock a folder.
type holder struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func newHolder(t *testing.T, dir, how string) *holder {
	t.Helper()
	h := &holder{cmd: exec.Command(os.Args[0])}
	h.cmd.Env = append(os.Environ(), holderVariable+"="+dir, "GEOALIGN_TEST_FLOCK="+how)
	h.in = check.Get(h.cmd.StdinPipe())(t)
	out := check.Get(h.cmd.StdoutPipe())(t)
	h.out = bufio.NewReader(out)
	check.OK(t, h.cmd.Start())
	t.Cleanup(func() { h.in.Close(); h.cmd.Wait() })
	return h
}

// line returns the next line that a holder prints, but for notes.
func (h *holder) line(t *testing.T) string {
	t.Helper()
	for {
		text, err := h.out.ReadString('\n')
		if err != nil {
			t.Fatalf("a holder ended with %q: %v", text, err)
		}
		if !strings.HasPrefix(text, "note: ") {
			return strings.TrimSpace(text)
		}
	}
}

// simulated sets how locks work for a test, here and in its holders, with short times.
func simulated(t *testing.T, how string) {
	t.Helper()
	SimulateFlock(how)
	wasBeat, wasStale := beatEvery, staleAfter
	beatEvery, staleAfter = 100*time.Millisecond, time.Second
	t.Cleanup(func() { SimulateFlock(""); beatEvery, staleAfter = wasBeat, wasStale })
}

// locked locks a folder that nobody has, and returns what was said.
func locked(t *testing.T, dir string) (*FolderLock, string) {
	t.Helper()
	var said strings.Builder
	l := check.Get(Lock(dir, func(format string, args ...any) { fmt.Fprintf(&said, format+"\n", args...) }))(t)
	return l, said.String()
}

// held makes sure that another one has the lock of a folder.
func held(t *testing.T, dir string) *HeldError {
	t.Helper()
	var is *HeldError
	l, err := Lock(dir, func(string, ...any) {})
	if !errors.As(err, &is) {
		if err == nil {
			l.Release()
		}
		t.Fatalf("the lock that another one has is given: %v", err)
	}
	return is
}

// writeOwner leaves the owner file of somebody in a folder.
func writeOwner(t *testing.T, dir string, o Owner, age time.Duration) string {
	t.Helper()
	b := check.Get(json.Marshal(o))(t)
	path := filepath.Join(dir, OwnerFile)
	check.OK(t, os.WriteFile(path, b, 0o666))
	at := time.Now().Add(-age)
	check.OK(t, os.Chtimes(path, at, at))
	return path
}

// TestLock: with any kind of locks one has the folder at a time, of one process or of two, the file says who while it is held, the one
// who is refused is told, and a process that is killed leaves a lock that the next one takes at once.
func TestLock(t *testing.T) {
	for _, how := range []string{"", FlockFails, FlockLies} {
		t.Run("flock "+how, func(t *testing.T) {
			simulated(t, how)
			dir := t.TempDir()
			l, said := locked(t, dir)
			if has := strings.Contains(said, "has no locks"); has != (how != "") {
				t.Errorf("said %q", said)
			}
			if o, ok, _, err := readOwner(filepath.Join(dir, OwnerFile)); err != nil || !ok || o.PID != os.Getpid() || o.Command == "" {
				t.Errorf("owner %+v, %v", o, err)
			}
			held(t, dir)
			if h := newHolder(t, dir, how); !strings.Contains(h.line(t), fmt.Sprintf("refused: another process writes to %s (process %d on ", dir, os.Getpid())) {
				t.Error("another process got the lock, or was not told who has it")
			}
			if err := l.Lost(); err != nil {
				t.Error(err)
			}
			for range 2 {
				if err := l.Release(); err != nil {
					t.Error(err)
				}
			}
			if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
				t.Errorf("%v is left (%v)", list, err)
			}

			h := newHolder(t, dir, how)
			if got := h.line(t); got != "locked" {
				t.Fatalf("the lock that was given up: %s", got)
			}
			if e := held(t, dir); e.Owner.PID != h.cmd.Process.Pid || !strings.Contains(e.Error(), fmt.Sprint("process ", h.cmd.Process.Pid)) {
				t.Errorf("%+v", e)
			}
			check.OK(t, h.cmd.Process.Kill())
			_ = h.cmd.Wait()
			if _, err := os.Stat(filepath.Join(dir, OwnerFile)); err != nil {
				t.Errorf("a killed process left no owner file: %v", err)
			}
			l, _ = locked(t, dir)
			if err := l.Release(); err != nil {
				t.Error(err)
			}
			if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
				t.Errorf("%v is left (%v)", list, err)
			}
		})
	}
}

// TestOwners: what an owner file of another process, container or machine means, with locks that work here and without.
func TestOwners(t *testing.T) {
	self := process.Self()
	if self.Boot == "" {
		t.Skip("this system does not tell one start of the machine from another")
	}
	of := func(change func(o *Owner)) Owner {
		o := Owner{Program: ownProgram, Identity: self, Since: time.Now(), Token: "x"}
		change(&o)
		return o
	}
	elsewhere := of(func(o *Owner) { o.Host, o.Boot = "elsewhere", "1" })
	container := of(func(o *Owner) { o.Host, o.Namespace = "container", "pid:[1]" })
	booted := time.Since(process.Booted())
	for _, c := range []struct {
		name        string
		o           Owner
		age         time.Duration
		here, alone bool // refused with locks that work here, and without
	}{
		{"a process that has ended", of(func(o *Owner) { o.PID = 1 << 30 }), 0, false, false},
		{"a number that was given again", of(func(o *Owner) { o.PID, o.Started = os.Getppid(), "1" }), 0, false, false},
		{"a process that goes on", of(func(o *Owner) { o.PID, o.Started = os.Getppid(), "" }), time.Hour, false, true},
		{"this process, which has it no more", of(func(*Owner) {}), 0, false, false},
		{"another machine", elsewhere, 0, true, true},
		{"another machine that is silent", elsewhere, time.Hour, false, false},
		{"another container", container, 0, false, true},
		{"another container that is silent", container, time.Hour, false, false},
		{"this machine before it started again", of(func(o *Owner) { o.Boot = "1" }), booted + time.Hour, false, false},
		{"another machine of this name", of(func(o *Owner) { o.Boot = "1" }), 0, true, true},
	} {
		for how, want := range map[string]bool{"": c.here, FlockFails: c.alone, FlockLies: c.alone} {
			t.Run(c.name+" "+how, func(t *testing.T) {
				simulated(t, how)
				dir := t.TempDir()
				path := writeOwner(t, dir, c.o, c.age)
				if !want {
					l, _ := locked(t, dir)
					if err := l.Release(); err != nil {
						t.Error(err)
					}
					return
				}
				e := held(t, dir)
				if e.Owner.Token != "x" || !e.Remote {
					if c.o.Boot != self.Boot || c.o.Namespace != self.Namespace {
						t.Errorf("%+v", e)
					}
					return
				}
				// The advice works.
				if !strings.Contains(e.Error(), "if it has ended, remove "+path) {
					t.Errorf("%v", e)
				}
				check.OK(t, os.Remove(path))
				l, _ := locked(t, dir)
				if err := l.Release(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestHeartbeat: an owner on another machine that is silent, as after an outage of the file server, and then is not, has the lock; one's
// own heartbeat is seen in the file.
func TestHeartbeat(t *testing.T) {
	simulated(t, FlockFails)
	dir := t.TempDir()
	o := Owner{Program: ownProgram, Identity: process.Identity{Host: "elsewhere", Boot: "1", PID: 1}, Token: "x"}
	path := writeOwner(t, dir, o, time.Hour)
	time.AfterFunc(beatEvery, func() { now := time.Now(); _ = os.Chtimes(path, now, now) })
	held(t, dir)
	check.OK(t, os.Remove(path))
	l, _ := locked(t, dir)
	defer l.Release()
	_, _, first, _ := readOwner(path)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, _, now, err := readOwner(path); err == nil && now.After(first) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no heartbeat")
		}
	}
	if err := os.Remove(path); err != nil { // by somebody who thought that this process had ended
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if now, ok, _, _ := readOwner(path); ok && now.Token == l.owner.Token {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the owner file is not made again")
		}
	}
}

// TestLost: who finds another owner in the file has lost the lock, says so, and leaves the file to him.
func TestLost(t *testing.T) {
	simulated(t, FlockFails)
	dir := t.TempDir()
	l, _ := locked(t, dir)
	o := Owner{Program: ownProgram, Identity: process.Identity{Host: "elsewhere", Boot: "1", PID: 7}, Token: "other"}
	path := writeOwner(t, dir, o, 0)
	for end := time.Now().Add(10 * time.Second); l.Lost() == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the lock is not lost")
		}
	}
	if err := l.Lost(); !strings.Contains(err.Error(), "process 7 on elsewhere") {
		t.Error(err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	if now, _, _, err := readOwner(path); err != nil || now.Token != "other" {
		t.Errorf("%+v, %v", now, err)
	}
}

// TestDamagedOwner: half of an owner file holds the lock for as long as it takes to write one, and is then another one's or left over.
func TestDamagedOwner(t *testing.T) {
	for _, how := range []string{"", FlockFails} {
		simulated(t, how)
		beatEvery = 2 * time.Second // 200 ms to write one
		for _, completed := range []bool{false, true} {
			dir := t.TempDir()
			path := filepath.Join(dir, OwnerFile)
			check.OK(t, os.WriteFile(path, []byte(`{"program":"geoal`), 0o666))
			if l, err := Lock(dir, nil); err == nil {
				l.Release()
				t.Error("an owner file that is being written is taken over at once")
			}
			if completed {
				writeOwner(t, dir, Owner{Program: ownProgram, Identity: process.Identity{Host: "elsewhere", Boot: "1"}, Token: "x"}, 0)
				held(t, dir)
				continue
			}
			l, _ := locked(t, dir)
			if err := l.Release(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestManyTakeOver: of many processes that find the owner of a folder gone at the same time, without locks, one gets it.
func TestManyTakeOver(t *testing.T) {
	for range 5 {
		dir := t.TempDir()
		writeOwner(t, dir, Owner{Program: ownProgram, Identity: process.Self(), Token: "x"}, 0) // this process, which has it no more
		b, _ := os.ReadFile(filepath.Join(dir, OwnerFile))
		b = []byte(strings.Replace(string(b), fmt.Sprintf(`"pid":%d`, os.Getpid()), fmt.Sprintf(`"pid":%d`, 1<<30), 1))
		check.OK(t, os.WriteFile(filepath.Join(dir, OwnerFile), b, 0o666))
		var all []*holder
		for range 6 {
			all = append(all, newHolder(t, dir, FlockFails))
		}
		got := 0
		for _, h := range all {
			if h.line(t) == "locked" {
				got++
			}
		}
		if got != 1 {
			t.Errorf("%d of 6 got the lock", got)
		}
		for _, h := range all {
			h.in.Close()
			_ = h.cmd.Wait()
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
			t.Errorf("%v is left (%v)", list, err)
		}
	}
}

// TestPublish: a folder gets its name without the owner file, and its lock is free.
func TestPublish(t *testing.T) {
	for _, how := range []string{"", FlockFails} {
		simulated(t, how)
		dir := t.TempDir()
		from, to := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		check.OK(t, os.Mkdir(from, 0o777))
		l, _ := locked(t, from)
		check.OK(t, l.Publish(to))
		if err := l.Release(); err != nil {
			t.Error(err)
		}
		if list, err := os.ReadDir(to); err != nil || len(list) > 0 {
			t.Errorf("%v (%v)", list, err)
		}
		l, _ = locked(t, to)
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
}

// FuzzOwner: an owner file is one of this program, or none, and what is told of it is one line.
func FuzzOwner(f *testing.F) {
	f.Add([]byte(`{"program":"geoalign","host":"a","pid":1,"since":"2026-01-02T03:04:05Z","command":"x\n\u001b[31my","token":"t"}`))
	f.Add([]byte(`{"program":"geoal`))
	f.Add([]byte(``))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, ok := parseOwner(b)
		if !ok {
			return
		}
		if text := o.String(); strings.ContainsAny(text, "\n\r\x1b") {
			t.Errorf("%q", text)
		}
		if o.Token == "" || o.Program != ownProgram {
			t.Errorf("%+v", o)
		}
	})
}
