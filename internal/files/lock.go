package files

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/geoalign/geoalign/internal/process"
)

// Times of owner files. The heartbeat rewrites the file; an owner that cannot be looked at, on another machine or in
// another container, counts as ended when there was none for staleAfter and none comes while another heartbeat is
// waited for.
var (
	beatEvery  = 10 * time.Second
	staleAfter = 2 * time.Minute
)

// FolderLock is the lock of a folder, which one process has at a time. Two things make it: the system's lock (flock),
// which ends with the process however it does, and the owner file, which says who has it and decides alone where the
// file system has no locks, or has them for each machine alone. A nil one is that of a process that others write for.
type FolderLock struct {
	dir, path string // of the owner file
	f         *os.File
	owner     Owner
	content   []byte
	written   bool // the owner file is there

	mu    sync.Mutex
	timer *time.Timer
	lost  error
	over  bool
}

// HeldError says that another one has the lock of a folder.
type HeldError struct {
	Dir    string
	Owner  Owner // Token is empty where the file does not tell
	Remote bool  // whether it has ended cannot be seen from here
}

// Error names who has it and how to take over from one that has ended.
func (e *HeldError) Error() string {
	text := "another process writes to " + e.Dir
	if e.Owner.Token != "" {
		text += " (" + e.Owner.String() + ")"
	}
	if e.Remote {
		text += fmt.Sprintf(", by its heartbeat of the last %v: if it has ended, remove %s", staleAfter,
			filepath.Join(e.Dir, OwnerFile))
	}
	return text
}

// own locks of this process by their tokens: its number may be that of one that has ended.
var ownTokens sync.Map

// Lock takes the lock of a folder until Release is called or the process ends, however it does. Where another one has
// it, of this process or not, that is a *HeldError. say is told where the file system has no locks, and where the lock
// was taken over from another machine; nil: nobody is, and nothing is waited for.
func Lock(dir string, say func(format string, args ...any)) (*FolderLock, error) {
	for range 100 { // a folder that gets another name meanwhile, as what an export has finished
		f, err := os.Open(dir)
		if err != nil {
			return nil, err
		}
		l := &FolderLock{dir: dir, path: filepath.Join(dir, OwnerFile), f: f}
		got, works := exclusive(f, dir)
		if works && !got {
			o, ok, _, _ := readOwner(l.path)
			if !ok {
				o = Owner{}
			}
			return nil, errors.Join(&HeldError{Dir: dir, Owner: o}, f.Close())
		}
		if !sameFolder(f, dir) {
			f.Close()
			continue
		}
		if err = l.claim(works, say); err == nil {
			return l, nil
		}
		f.Close()
		if !errors.Is(err, fs.ErrNotExist) { // the folder was removed
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s is renamed again and again", dir)
}

// sameFolder is named by whatever links.
func sameFolder(f *os.File, dir string) bool {
	there, err := os.Stat(dir)
	if err != nil {
		return false
	}
	st, err := f.Stat()
	return err == nil && os.SameFile(there, st)
}

// claim writes the owner file, or finds out that another one has the lock. works says that the system's lock is held.
func (l *FolderLock) claim(works bool, say func(format string, args ...any)) error {
	l.owner = newOwner(rand.Text())
	l.content, _ = json.Marshal(l.owner)
	l.content = append(l.content, '\n')
	patient := say != nil
	if !patient {
		say = func(string, ...any) {}
	}
	for tries := 0; ; tries++ {
		err := l.write()
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			if works {
				return nil // the file is beside the lock; what cannot be written here the caller finds out
			}
			return fmt.Errorf("%s has no locks, and %w", l.dir, err)
		}
		j := judge(l, works, patient)
		switch {
		case j.err != nil && works:
			return nil
		case j.err != nil:
			return j.err
		case j.gone:
			continue
		case j.held || tries > 1000:
			return &HeldError{Dir: l.dir, Owner: j.owner, Remote: j.remote}
		}
		if err := l.takeOver(works); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if j.remote && patient {
			say("note: the lock of %s was left by %s, without a heartbeat for %v: taken over", l.dir, j.owner,
				staleAfter)
		}
		patient = false // it was waited for
	}
	if !works {
		say("note: the file system of %s has no locks: %s says who writes there", l.dir, l.path)
	}
	ownTokens.Store(l.owner.Token, true)
	l.timer = time.AfterFunc(beatEvery, l.beat)
	return nil
}

// write makes the owner file where there is none.
func (l *FolderLock) write() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(l.content)
	if err = errors.Join(err, f.Close()); err != nil { // a full disk
		return errors.Join(err, os.Remove(l.path))
	}
	l.written = true
	return nil
}

// takeOver removes the owner file of one that has ended, while no other process does: what such a one judged a moment
// ago may be another's now.
func (l *FolderLock) takeOver(works bool) error {
	guard := l.path + "-takeover"
	f, err := os.OpenFile(guard, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		if st, err := os.Stat(guard); err == nil {
			if now, err := clock(l.dir, l.owner.Token); err == nil && now.Sub(st.ModTime()) > staleAfter {
				return os.Remove(guard) // one that was killed in between
			}
		}
		time.Sleep(5 * time.Millisecond)
		return nil
	}
	if err != nil {
		return err
	}
	if v := judge(l, works, false); !v.gone && !v.held && v.err == nil {
		err = os.Remove(l.path)
	}
	return errors.Join(err, f.Close(), os.Remove(guard))
}

// beat says that the lock is held, and finds out whether it is. A file that somebody removed is made again.
func (l *FolderLock) beat() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	switch o, ok, _, err := readOwner(l.path); {
	case errors.Is(err, fs.ErrNotExist):
		_ = l.write() // else at the next beat
	case err == nil && (!ok || o.Token != l.owner.Token):
		l.lost = fmt.Errorf("the lock of %s was taken over meanwhile (%s)", l.dir, o)
		l.written = false
		return
	default:
		// the time of the change is the file system's own clock's
		if f, err := os.OpenFile(l.path, os.O_WRONLY, 0); err == nil {
			_, _ = f.WriteAt(l.content, 0)
			_ = f.Close()
		}
	}
	l.timer.Reset(beatEvery)
}

// Lost returns an error once another process has taken the lock over, as one does that cannot see this one while it is
// stopped for minutes. What the lock protects must not be written to then.
func (l *FolderLock) Lost() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// end removes the owner file. first is false where that was done before.
func (l *FolderLock) end() (first bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false, nil
	}
	l.over = true
	if l.timer != nil {
		l.timer.Stop()
	}
	defer ownTokens.Delete(l.owner.Token)
	if !l.written {
		return true, nil
	}
	if o, _, _, err := readOwner(l.path); err != nil || o.Token != l.owner.Token { // the folder is gone, or another's
		return true, nil
	}
	return true, os.Remove(l.path)
}

// Release gives the lock up. Further calls do nothing.
func (l *FolderLock) Release() error {
	if l == nil {
		return nil
	}
	first, err := l.end()
	if !first {
		return nil
	}
	return errors.Join(err, l.f.Close())
}

// Publish gives the folder another name, without its owner file, and the lock up.
func (l *FolderLock) Publish(path string) error {
	if _, err := l.end(); err != nil {
		return errors.Join(err, l.f.Close())
	}
	return rename(l.f, l.dir, path)
}

// verdict is what is found out about an owner file.
type verdict struct {
	owner  Owner
	gone   bool // there is no file any more
	held   bool
	remote bool // its process cannot be looked at from here
	err    error
}

// judge finds out whether the owner of a folder goes on.
func judge(l *FolderLock, works, patient bool) (v verdict) {
	o, ok, beat, err := readOwner(l.path)
	if v.owner = o; errors.Is(err, fs.ErrNotExist) {
		v.gone = true
		return v
	}
	if err != nil {
		v.err = err
		return v
	}
	self := l.owner.Identity
	switch {
	case !ok: // is being written, or was by one that was killed
	case o.SameMachine(self) && works: // or the system's lock would be held
		return v
	case o.SameMachine(self) && o.Namespace == self.Namespace && o.PID == self.PID && o.Started == self.Started:
		_, v.held = ownTokens.Load(o.Token)
		return v
	case o.SameMachine(self) && o.Namespace == self.Namespace:
		v.held = process.Alive(o.PID, o.Started)
		return v
	// this machine started again since
	case o.Host == self.Host && !o.SameMachine(self) && beat.Before(process.Booted()):
		return v
	}
	v.remote = true
	now, err := clock(l.dir, l.owner.Token)
	if err != nil {
		v.err = err
		return v
	}
	switch age := now.Sub(beat); {
	case !ok && age >= halfWritten(): // by one that was killed
	case !ok && patient:
		time.Sleep(halfWritten() + halfWritten()/10)
		return judge(l, works, patient)
	case !ok:
		v.held = true
	case age < staleAfter:
		v.held = true
	case patient: // a server of files that was away kept heartbeats back too
		time.Sleep(beatEvery + beatEvery/2)
		again, _, later, err := readOwner(l.path)
		v.held = err == nil && (again.Token != o.Token || !later.Equal(beat))
	}
	return v
}

// halfWritten is how long an owner file may be without its content before its writer counts as killed.
func halfWritten() time.Duration { return beatEvery / 10 }

// clock returns the time of the clock that the times of files in a folder are of: a file server's may differ from that
// of this machine.
func clock(dir, token string) (time.Time, error) {
	path := filepath.Join(dir, tempPrefix+"clock-"+token)
	if err := os.WriteFile(path, []byte("x"), 0o666); err != nil {
		return time.Time{}, err
	}
	st, err := os.Stat(path)
	if err := errors.Join(err, os.Remove(path)); err != nil {
		return time.Time{}, err
	}
	return st.ModTime(), nil
}
