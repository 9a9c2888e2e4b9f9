//go:build !static

package kernel

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/dynlib"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/gemm/gemmtest"
	"github.com/geoalign/geoalign/internal/kernel/library"
	"github.com/geoalign/geoalign/internal/kernel/tune"
	"github.com/geoalign/geoalign/internal/testlib"
)

func TestMain(m *testing.M) {
	if os.Getenv("GEOALIGN_PROBE") != "" {
		dynlib.ProbeInChild()
	}
	os.Exit(m.Run())
}

// badShape is the number of terms of products that end a process.
const badShape = 161

// newCrashing returns an engine that chooses among what is found, with an OpenBLAS in which products of badShape terms run code.
func newCrashing(t *testing.T, o Options, code []byte) *Engine {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the broken libraries are for Linux on amd64")
	}
	file := filepath.Join(t.TempDir(), "libscipy_openblas.so")
	text := testlib.Build([]testlib.Func{{Name: "scipy_openblas_set_num_threads", Code: testlib.ReturnsZero},
		{Name: "scipy_sgemm_", Code: testlib.SGEMM(false, badShape, code)}}, nil)
	if err := os.WriteFile(file, text, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GEOALIGN_OPENBLAS", file)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dynlib.SetProbing(true)
	t.Cleanup(func() { dynlib.SetProbing(false) })
	return openCrashing(t, o)
}

func openCrashing(t *testing.T, o Options) *Engine {
	t.Helper()
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	if e.tuner != nil {
		e.tuner.left = time.Minute // on a busy machine too
	}
	return e
}

// bad is a product that ends a process, good one that does not.
func bad() gemmtest.Case {
	return gemmtest.NewCase(rand.New(rand.NewPCG(1, 9)), gemmtest.Case{P: gemm.Product{M: 136, N: 200, K: badShape, Alpha: 1}})
}

func good() gemmtest.Case {
	return gemmtest.NewCase(rand.New(rand.NewPCG(2, 9)), gemmtest.Case{P: gemm.Product{M: 136, N: 200, K: badShape + 1, Alpha: 1}})
}

// multiplied checks a product by Multiply alone: MultiplySerial has the kernel of fixed rules in any case.
func multiplied(t *testing.T, e *Engine, g gemmtest.Case) {
	t.Helper()
	want, size := gemmtest.Exact(&g.P)
	e.Multiply(&g.P)
	for i := range want {
		if i%g.P.LDC < g.P.N && !(math.Abs(float64(g.P.C[i])-want[i]) <= 1e-4*(size[i]+1)) {
			t.Fatalf("%v: value %d is %g, want %g", g, i, g.P.C[i], want[i])
		}
	}
}

// warned counts the warnings of e that contain all of words.
func warned(e *Engine, words ...string) (n int) {
	for _, w := range e.Warnings() {
		if !slices.ContainsFunc(words, func(s string) bool { return !strings.Contains(w, s) }) {
			n++
		}
	}
	return n
}

// A library that crashes for one shape costs itself for that shape, whichever way it does, and the next processes know.
func TestLibraryThatCrashesForOneShape(t *testing.T) {
	for name, r := range map[string]struct {
		code []byte
		how  string
	}{
		"segfault": {testlib.Segfaults, "segmentation fault"},
		"illegal":  {testlib.Illegal, "illegal instruction"},
		"abort":    {append(slices.Clone(testlib.KillsItself[:len(testlib.KillsItself)-1]), testlib.Loops...), "abort"}, // the signal may reach another thread first
		"exit":     {testlib.ExitsZero, "exit status 0"},
	} {
		e := newCrashing(t, Options{Threads: 2, Tune: tune.Cache}, r.code)
		for _, g := range []gemmtest.Case{bad(), good(), bad()} {
			checkProduct(t, e, g)
		}
		if n := warned(e, "openblas is left out for the product NN 136x200x161 fp32", "ended a trial process", r.how); n != 1 {
			t.Errorf("%s: %q", name, e.Warnings())
		}
		table := e.tuner.table
		for product, ended := range map[string]bool{"NN 136x200x161 fp32": true, "NN 136x200x162 fp32": false} {
			full := product
			for p := range table.All() {
				if strings.HasPrefix(p, product) {
					full = p
				}
			}
			if table.Ended(full, library.OpenBLAS) != ended || table.Passed(full, library.OpenBLAS) == ended {
				t.Errorf("%s: %s is not kept", name, full)
			}
		}
		e.Close()
		for _, mode := range []string{tune.Cache, tune.On} {
			again := openCrashing(t, Options{Threads: 2, Tune: mode})
			checkProduct(t, again, bad())
			if n := warned(again, "openblas is left out for the product NN 136x200x161 fp32", "a process ended while it was tried"); n != 1 {
				t.Errorf("%s, %s: %q", name, mode, again.Warnings())
			}
			if again.tuner.outside.(*outside).child != nil && mode == tune.Cache {
				t.Errorf("%s: a process is started for what is known: %+v", name, again.Tuning().Products)
			}
			again.Close()
		}
	}
}

// A library that is asked for by name, and so is what the fixed rules take, is replaced for the shape by the built-in product.
func TestDefaultThatCrashes(t *testing.T) {
	for _, precision := range []string{precisionFP32, precisionBF16} {
		o := Options{Backend: library.OpenBLAS, Threads: 2, Tune: tune.Cache, Precision: precision}
		e := newCrashing(t, o, testlib.Segfaults)
		multiplied(t, e, bad())
		multiplied(t, e, good())
		kept := e.Chosen()
		for _, p := range e.Tuning().Products {
			want := library.OpenBLAS
			if strings.Contains(p.Product, "x161 ") {
				want = library.Builtin
			}
			if !strings.HasPrefix(p.Kernel, want) {
				t.Errorf("%+v", p)
			}
		}
		e.Close()
		if err := os.Remove(tune.File()); err != nil {
			t.Fatal(err)
		}
		again := openCrashing(t, o)
		again.Follow(kept, false) // as a run that is resumed on a machine that knows nothing
		multiplied(t, again, bad())
		multiplied(t, again, good())
		if now := again.Chosen(); len(now.Products) != 2 {
			t.Errorf("%v, was %v", now.Products, kept.Products)
		}
		for p, kernel := range again.Chosen().Products {
			if kept.Products[p] != kernel {
				t.Errorf("%s: %s, was %s", p, kernel, kept.Products[p])
			}
		}
		again.Close()
	}
}

// A library that ends processes for many shapes is left out for all.
func TestLibraryThatCrashesOften(t *testing.T) {
	e := newCrashing(t, Options{Threads: 1, Tune: tune.Cache}, testlib.Segfaults)
	for i := range mostEnds + 2 {
		g := gemmtest.NewCase(rand.New(rand.NewPCG(3, uint64(i))), gemmtest.Case{P: gemm.Product{M: 136 + i, N: 200, K: badShape, Alpha: 1}})
		checkProduct(t, e, g)
	}
	if n, all := warned(e, "openblas is left out for the product"), warned(e, "openblas is not measured for further products"); n != mostEnds || all != 1 {
		t.Errorf("%d products, %q", n, e.Warnings())
	}
}

// A way that is slow for the first products is tried for no more, but where everything is measured anew.
func TestSlowLibraryIsNotTriedOn(t *testing.T) {
	for mode, more := range map[string]bool{tune.Cache: false, tune.On: true} {
		e := newTuned(t, 1, mode, filepath.Join(t.TempDir(), "kernels.json"))
		e.rule.slow, e.other.slow = 0, 30*time.Millisecond
		for i := range mostSlow + 1 {
			before := e.other.calls.Load()
			checkProduct(t, e.Engine, big(uint32(i), func(g *gemmtest.Case) { g.P.M += i }))
			if called := e.other.calls.Load() > before; called != (i < mostSlow || more) {
				t.Errorf("%s, product %d: called %v", mode, i, called)
			}
		}
	}
}

// fakeTester is another process that fails as a test says.
type fakeTester struct {
	err   error
	calls int
}

func (f *fakeTester) try(attempt) error { f.calls++; return f.err }
func (f *fakeTester) close()            {}

// Where no process can be started nothing is measured; one that is ended from outside says nothing of the library.
func TestNoOtherProcess(t *testing.T) {
	for _, r := range []struct {
		err   error
		warn  string
		calls int
		ended bool
	}{
		{errors.New("no more processes"), "products of libraries are not measured, since they cannot be tried in a process of their own: no more processes", 1, false},
		{&dynlib.EndedError{How: "ended a trial process (signal: killed)", Outside: true}, "rule is left out for the product NN 136x200x160 fp32", 1, false},
		{&dynlib.EndedError{How: "gave no answer within 10s", Late: true}, "which gave no answer", 2, true},
	} {
		e := newTuned(t, 1, tune.Cache, filepath.Join(t.TempDir(), "kernels.json"))
		f := &fakeTester{err: r.err}
		e.tuner.outside = f
		g := big(1, nil)
		checkProduct(t, e.Engine, g)
		first := e.only(t).Product
		for i := range 2 * mostEnds { // not for ever
			checkProduct(t, e.Engine, big(3, func(g *gemmtest.Case) { g.P.M += 1 + i }))
		}
		if f.calls > 2*mostEnds || f.calls < r.calls || len(e.warnings) == 0 || !strings.Contains(e.warnings[0], r.warn) || e.tuner.table.Ended(first, "rule") != r.ended {
			t.Errorf("%v: %d calls, %q", r.err, f.calls, e.warnings)
		}
		if e.other.calls.Load() > 0 {
			t.Errorf("%v: it is called here", r.err)
		}
	}
}

// A trial that takes too long says as much of the machine as of the library: it counts for this process, which measures nothing more,
// and the next one measures anew.
func TestLateTrialIsForgotten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kernels.json")
	e := newTuned(t, 1, tune.Cache, file)
	e.tuner.outside = &fakeTester{err: &dynlib.EndedError{How: "gave no answer within 10s", Late: true}}
	multiplied(t, e.Engine, big(1, nil))
	multiplied(t, e.Engine, big(2, func(g *gemmtest.Case) { g.P.M++ }))
	for _, p := range e.Tuning().Products {
		want := library.Builtin
		if strings.HasPrefix(p.Product, "NN 137x") { // nothing is known of it
			want = "rule"
		}
		if !strings.HasPrefix(p.Kernel, want) || e.other.calls.Load() > 0 {
			t.Errorf("%+v", p)
		}
	}
	if len(e.warnings) != 2 || !strings.Contains(e.warnings[0], "nothing more is measured until the next start") {
		t.Errorf("%q", e.warnings)
	}
	e.Close()
	e = newTuned(t, 1, tune.Cache, file)
	e.tuner.outside = &fakeTester{}
	for i := range 2 {
		multiplied(t, e.Engine, big(uint32(i), func(g *gemmtest.Case) { g.P.M += i }))
	}
	for _, p := range e.Tuning().Products {
		if p.From != fromTiming || !strings.HasPrefix(p.Kernel, "other") {
			t.Errorf("the next process: %+v", p)
		}
	}
	if len(e.warnings) > 0 {
		t.Errorf("the next process: %q", e.warnings)
	}
	e.Close()
}

// A process that takes too long to begin is one of a busy machine too.
func TestLateStartIsForgotten(t *testing.T) {
	defer func(d time.Duration) { outsideTimeout = d }(outsideTimeout)
	outsideTimeout = time.Nanosecond
	o := Options{Threads: 2, Tune: tune.Cache}
	e := newCrashing(t, o, testlib.Segfaults)
	multiplied(t, e, good())
	if n := warned(e, "gave no answer", "nothing more is measured until the next start"); n == 0 || len(e.tuner.table.All()) > 0 {
		t.Errorf("%q, kept %v", e.Warnings(), e.tuner.table.All())
	}
	e.Close()
	outsideTimeout = time.Minute
	e = openCrashing(t, o)
	multiplied(t, e, good())
	if list := e.Tuning().Products; len(list) != 1 || list[0].From != fromTiming || warned(e, "gave no answer") > 0 {
		t.Errorf("the next start: %+v, %q", list, e.Warnings())
	}
}
