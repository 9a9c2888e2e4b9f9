package data

import (
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/identity"
)

// mostHandles is the number of files that handles keep open.
const mostHandles = 32

// handles read at any place of many files, of which they keep some open. Methods may be called from
// several goroutines.
type handles struct {
	paths []string
	files []identity.Stamp // when they were first looked at

	mu   sync.Mutex
	open map[int]*handle
	uses uint64
}

type handle struct {
	f     *os.File
	users int
	used  uint64 // when, by handles.uses
}

// readAt fills b with the bytes of file i from off on.
func (h *handles) readAt(i int, b []byte, off int64) (int, error) {
	f, done, err := h.take(i)
	if err != nil {
		return 0, err
	}
	defer done()
	return f.ReadAt(b, off)
}

// take opens file i, or takes it where it is open. done gives it back.
func (h *handles) take(i int) (f *os.File, done func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	x := h.open[i]
	if x == nil {
		f, _, err := files.Open(h.paths[i], 0)
		if err != nil {
			return nil, nil, err
		}
		if st, err := f.Stat(); err != nil || !h.same(i, st) {
			f.Close()
			if err == nil {
				err = fmt.Errorf("%s has changed since it was opened: start again", h.paths[i])
			}
			return nil, nil, err
		}
		if h.open == nil {
			h.open = map[int]*handle{}
		}
		x = &handle{f: f}
		h.open[i] = x
	}
	x.users++
	h.uses++
	x.used = h.uses
	h.shut()
	return x.f, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		x.users--
		h.shut()
	}, nil
}

func (h *handles) same(i int, st fs.FileInfo) bool {
	return identity.StampOfInfo(st) == h.files[i]
}

// shut closes files that nobody uses while too many are open.
func (h *handles) shut() {
	for len(h.open) > mostHandles {
		oldest := -1
		for i, x := range h.open {
			if x.users == 0 && (oldest < 0 || x.used < h.open[oldest].used) {
				oldest = i
			}
		}
		if oldest < 0 {
			return
		}
		h.open[oldest].f.Close()
		delete(h.open, oldest)
	}
}

// close closes all files.
func (h *handles) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, x := range h.open {
		x.f.Close()
		delete(h.open, i)
	}
}
