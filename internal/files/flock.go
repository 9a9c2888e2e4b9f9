package files

import (
	"context"
	"os"
	"time"
)

// flock locks an open file or folder against all others that open it, until it is closed. got is false where another
// one has it; an error says that there are no locks. Tests replace it: see SimulateFlock.
var flock = systemFlock

// Ways in which a file system does without locks, for SimulateFlock.
const (
	FlockFails = "fails" // as NFS without a lock daemon does
	FlockLies  = "lies"  // everybody gets it, as of a file system that ignores the call
)

// SimulateFlock has locks fail or lie in this process, for tests of what stands in for them; "" is as the system does.
func SimulateFlock(how string) {
	switch how {
	case FlockFails:
		flock = func(*os.File) (bool, error) { return false, errNoFlock }
	case FlockLies:
		flock = func(*os.File) (bool, error) { return true, nil }
	default:
		flock = systemFlock
	}
}

// exclusive locks an open file or folder that has the name path. works says that the lock is one: a file system that
// ignores the call gives it to whoever asks, also to this process for the second time. Locks on some network file
// systems are of one machine alone.
func exclusive(f *os.File, path string) (got, works bool) {
	got, err := flock(f)
	if err != nil {
		return false, false
	}
	if !got {
		return false, true
	}
	second, err := os.Open(path)
	if err != nil {
		return true, false
	}
	defer second.Close()
	again, err := flock(second)
	return true, err == nil && !again
}

// own locks a file until it is closed, and says whether it did and the file still has its name: another one may have
// renamed it in between.
func own(f *os.File) bool {
	if got, works := exclusive(f, f.Name()); !got || !works {
		return false
	}
	return named(f, f.Name())
}

// named says whether an open file or folder is the one of a name.
func named(f *os.File, path string) bool {
	there, err := os.Lstat(path)
	if err != nil {
		return false
	}
	st, err := f.Stat()
	return err == nil && os.SameFile(there, st)
}

// lockPoll is how often WaitLock looks.
const lockPoll = 50 * time.Millisecond

// WaitLock makes a file at path if there is none and waits until no other process has it locked. unlock lets go; the
// end of the process does too. Where the file system has no locks it does without.
func WaitLock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	for {
		if got, err := flock(f); got || err != nil {
			return func() { f.Close() }, nil
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(lockPoll):
		}
	}
}
