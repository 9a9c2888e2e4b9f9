package tune

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/geoalign/geoalign/internal/usercache"
)

// Modes of a Table, as compute.tune names them.
const (
	Off   = "off"
	Cache = "cache" // what the file lacks is measured
	On    = "on"    // everything is measured anew
)

// Choice is a kernel for a product. The speeds are 0 where they are not known.
type Choice struct {
	Kernel        string  `json:"kernel"`
	GFLOPS        float64 `json:"gflops,omitempty"`
	Default       string  `json:"default,omitempty"` // by the fixed rules
	DefaultGFLOPS float64 `json:"default_gflops,omitempty"`
}

// Environment is what choices hold for.
type Environment struct {
	Processor    string   `json:"processor"`
	Instructions string   `json:"instructions"`
	Threads      int      `json:"threads"`
	Program      string   `json:"program"`
	Kernels      []string `json:"kernels"` // to choose from, libraries with version, file, size and time of change
}

func (e Environment) equal(o Environment) bool {
	return e.Processor == o.Processor && e.Instructions == o.Instructions && e.Threads == o.Threads &&
		e.Program == o.Program && slices.Equal(e.Kernels, o.Kernels)
}

// Table is what is known of the products of one environment. One goroutine at a time may use it.
type Table struct {
	env      Environment
	path     string // of the cache; empty: there is none
	run      map[string]string
	cached   map[string]Choice
	fresh    map[string]Choice // not in the file yet
	passed   kernels           // that a trial process multiplied with
	ended    kernels           // with which a process ended
	late     kernels           // for which a trial process took too long: nothing of that is kept
	tried    bool              // some of them are not in the file yet
	mark     *mark
	old      []string // marks of processes that have ended, whose content is in ended
	measures bool
	anew     bool
	notes    []string
}

// NewTable reads what the cache file knows of an environment, nothing with On. An empty path is a
// table without a file.
func NewTable(env Environment, mode, path string) *Table {
	t := &Table{env: env, path: path, anew: mode == On, measures: true, fresh: map[string]Choice{}, passed: kernels{},
		ended: kernels{}, late: kernels{}}
	all, err := read(path)
	_, absent := os.Stat(path)
	switch {
	case absent != nil:
	case err != nil:
		t.note("the measurements of matrix products in %s cannot be used (%v): they are made anew", path, err)
	default:
		m := all.of(env)
		if of := all.foreign(env); m == nil && of != "" {
			t.note("the measurements of matrix products in %s are of %s: they are made anew", path, of)
		}
		if m != nil {
			t.passed, t.ended = m.Passed, m.Ended
			if !t.anew {
				t.cached = m.Products
			}
		}
	}
	t.readMarks()
	for _, product := range slices.Sorted(maps.Keys(t.ended)) {
		for _, kernel := range t.ended[product] {
			t.note("%s is left out for the product %s: a process ended while it was tried (delete %s to try it again)",
				kernel, product, path)
		}
	}
	return t
}

func (t *Table) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// Notes returns what is to be known of the table since the last call.
func (t *Table) Notes() []string {
	n := t.notes
	t.notes = nil
	return n
}

// Path returns the cache file, empty without one.
func (t *Table) Path() string { return t.path }

// Known returns the number of products that the file knows.
func (t *Table) Known() int { return len(t.cached) }

// Follow makes the table take the kernels of a run first: product by product as Choices returned
// them. With alone it takes nothing else, and nothing is to be measured.
func (t *Table) Follow(run map[string]string, alone bool) {
	t.run = run
	if alone {
		t.cached, t.measures = nil, false
	}
}

// Run returns the kernel that the run has for a product.
func (t *Table) Run(product string) (kernel string, ok bool) {
	kernel, ok = t.run[product]
	return kernel, ok
}

// RunAll returns the kernels of the run.
func (t *Table) RunAll() map[string]string { return t.run }

// Find returns what the cache or this process knows of a product.
func (t *Table) Find(product string) (c Choice, ok bool) {
	if c, ok = t.fresh[product]; !ok {
		c, ok = t.cached[product]
	}
	return c, ok
}

// All returns the kernels of all products that are known, those of the run first.
func (t *Table) All() map[string]string {
	all := map[string]string{}
	for _, from := range []map[string]Choice{t.cached, t.fresh} {
		for product, c := range from {
			all[product] = c.Kernel
		}
	}
	maps.Copy(all, t.run)
	return all
}

// Measures reports whether products that are not known are to be measured.
func (t *Table) Measures() bool { return t.measures }

// Rest ends measuring: what is not known has the fixed rules.
func (t *Table) Rest() { t.measures = false }

// Add keeps what was measured, unless measuring has ended meanwhile.
func (t *Table) Add(product string, c Choice) {
	if t.measures && len(t.fresh) < most {
		t.fresh[product] = c
	}
}

// Ended reports whether a process ended while a kernel was tried for a product, or Late was told so.
func (t *Table) Ended(product, kernel string) bool {
	return t.ended.has(product, kernel) || t.late.has(product, kernel)
}

// Passed reports whether a trial process computed a product with a kernel, and went on.
func (t *Table) Passed(product, kernel string) bool { return t.passed.has(product, kernel) }

// Tried keeps what became of a trial process: whether it went on.
func (t *Table) Tried(product, kernel string, passed bool) {
	of := t.ended
	if passed {
		of = t.passed
	}
	of.add(product, kernel)
	t.tried = true
}

// Late says that a trial process took too long for a kernel, as it may on a busy machine: for the life of the table it
// counts as ended. Measuring ends, and what is not kept so far the next process measures.
func (t *Table) Late(product, kernel string) {
	t.late.add(product, kernel)
	t.Rest()
}

// Unsaved reports whether Save has something to write.
func (t *Table) Unsaved() bool {
	return t.path != "" && (len(t.fresh) > 0 || t.tried || len(t.old) > 0)
}

// Save adds what was measured to the file. Of a product that another process measured meanwhile the file keeps
// what it has, which that process goes on with, unless all is measured anew.
func (t *Table) Save() error {
	if !t.Unsaved() {
		return nil
	}
	defer usercache.Lock(t.path)()
	all, err := read(t.path)
	if err != nil {
		all = file{Format: format}
	}
	m := all.entry(t.env)
	for product, c := range t.fresh {
		if _, has := m.Products[product]; !has || t.anew {
			m.Products[product] = c
		}
	}
	m.Passed.addAll(t.passed)
	m.Ended.addAll(t.ended)
	m.Written = time.Now().UTC().Truncate(time.Second)
	all.bound()
	if err := usercache.Write(t.path, all); err != nil {
		return err
	}
	if t.cached == nil {
		t.cached = map[string]Choice{}
	}
	maps.Copy(t.cached, t.fresh)
	clear(t.fresh)
	t.tried = false
	t.forget()
	return nil
}

// Close ends the table without saving it.
func (t *Table) Close() { t.mark.close() }
