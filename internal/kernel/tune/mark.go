package tune

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/process"
)

// A mark is a file beside the cache that says what a process tries: kernels-<pid>-*.trying, empty
// while it tries nothing.
type mark struct{ f *os.File }

// tried is the content of a mark.
type tried struct {
	Host        string      `json:"host"`
	Environment Environment `json:"environment"`
	Product     string      `json:"product"`
	Kernel      string      `json:"kernel"`
}

// Names of marks, and the age from which one of another host or process number counts as left over.
const (
	markSuffix = ".trying"
	markAge    = 24 * time.Hour
)

// Open makes sure that the folder of the cache can be written to.
func (t *Table) Open() error {
	if t.path == "" {
		return errors.New("there is no cache folder for this user: set HOME or XDG_CACHE_HOME")
	}
	if t.mark != nil {
		return nil
	}
	dir := filepath.Dir(t.path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, fmt.Sprintf("kernels-%d-*%s", os.Getpid(), markSuffix))
	if err != nil {
		return err
	}
	t.mark = &mark{f}
	own.Store(f.Name(), true)
	return nil
}

// own has the names of the marks of this process: its number may be that of one that has ended.
var own sync.Map

// Begin says on the disk, where that is possible, that a kernel is tried for a product.
func (t *Table) Begin(product, kernel string) {
	if t.mark == nil {
		return
	}
	host, _ := os.Hostname()
	text, err := json.Marshal(tried{host, t.env, product, kernel})
	if err == nil && t.mark.f.Truncate(0) == nil {
		_, _ = t.mark.f.WriteAt(text, 0)
	}
}

// End says that what Begin said is over.
func (t *Table) End() {
	if t.mark != nil {
		_ = t.mark.f.Truncate(0)
	}
}

// close removes the mark.
func (m *mark) close() {
	if m != nil {
		_ = m.f.Close()
		_ = os.Remove(m.f.Name())
		own.Delete(m.f.Name())
	}
}

// readMarks takes over what processes tried that have ended.
func (t *Table) readMarks() {
	if t.path == "" {
		return
	}
	dir := filepath.Dir(t.path)
	list, _ := fs.Glob(os.DirFS(dir), "kernels-*"+markSuffix)
	host, _ := os.Hostname()
	for _, base := range list {
		name := filepath.Join(dir, base)
		st, err := os.Stat(name)
		if err != nil {
			continue
		}
		text, err := files.Read(name, files.MaxConfig)
		var m tried
		known := err == nil && json.Unmarshal(text, &m) == nil
		left := time.Since(st.ModTime()) > markAge
		if !left && (known && m.Host != host || running(name, known)) {
			continue
		}
		if known && !m.Environment.equal(t.env) && !left {
			continue // for a start in that environment
		}
		if known && m.Environment.equal(t.env) && m.Kernel != "" {
			t.ended.add(m.Product, m.Kernel)
		}
		t.old = append(t.old, name)
	}
}

// running reports whether the process of a mark goes on, as far as this system says. One with the number of this
// process may be another container's where the mark does not tell its host.
func running(name string, hostKnown bool) bool {
	number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(name), "kernels-"), "-")
	pid, err := strconv.Atoi(number)
	if err != nil {
		return false
	}
	if pid == os.Getpid() {
		_, is := own.Load(name)
		return is || !hostKnown
	}
	return process.Alive(pid, "")
}

// forget removes the marks whose content the file has.
func (t *Table) forget() {
	for _, name := range t.old {
		_ = os.Remove(name)
	}
	t.old = nil
}
