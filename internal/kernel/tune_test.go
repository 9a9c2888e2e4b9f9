package kernel

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/allocs"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/gemm/gemmtest"
	"github.com/geoalign/geoalign/internal/kernel/library"
	"github.com/geoalign/geoalign/internal/kernel/tune"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// fakeBackend is a library with the faults that a test gives it.
type fakeBackend struct {
	gemm.Backend
	slow    time.Duration               // each call takes longer by
	corrupt func(m, n int, c []float32) // spoils the result; may be nil
	panics  bool
	most    int // rows from which on a call takes another 24 ms; 0: none
	calls   atomic.Int32
}

func newFake() *fakeBackend { return &fakeBackend{Backend: gemm.Builtin()} }

func (f *fakeBackend) SGEMM(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	f.calls.Add(1)
	time.Sleep(f.slow)
	if f.most > 0 && m >= f.most {
		time.Sleep(24 * time.Millisecond)
	}
	if f.panics {
		panic("status 7")
	}
	f.Backend.SGEMM(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
	if f.corrupt != nil {
		f.corrupt(m, n, c)
	}
}

// tuned is an engine whose fixed rules take rule and that may choose other instead.
type tuned struct {
	*Engine
	rule, other *fakeBackend
	warnings    []string
}

// newTuned returns one that keeps its choices in a file. By the fixed rules it is slow.
func newTuned(t *testing.T, threads int, mode, file string) *tuned {
	t.Helper()
	e := &tuned{Engine: newTestEngine(t, threads), rule: newFake(), other: newFake()}
	e.rule.slow = 6 * time.Millisecond // more than a turn of another process on a busy machine
	e.backend, e.info, e.tuning = e.rule, library.Info{Name: "rule"}, mode
	e.tell = func(text string) { e.warnings = append(e.warnings, text) }
	e.startTuner(mode, []*way{{name: "rule", foreign: true, backend: e.rule}, {name: "other", foreign: true, backend: e.other}}, nil,
		[]library.Loaded{{Info: e.info}, {Info: library.Info{Name: "other"}}}, file)
	e.tuner.left = time.Minute // on a busy machine too
	return e
}

// big is a product that is large enough for a choice.
func big(seed uint32, change func(g *gemmtest.Case)) gemmtest.Case {
	g := gemmtest.Case{P: gemm.Product{M: 136, N: 200, K: 160, Alpha: 1}}
	if change != nil {
		change(&g)
	}
	return gemmtest.NewCase(rand.New(rand.NewPCG(uint64(seed), 7)), g)
}

// only returns what the engine says of the one product that it computed.
func (e *tuned) only(t *testing.T) TunedProduct {
	t.Helper()
	list := e.Tuning().Products
	if len(list) != 1 {
		t.Fatalf("%d products, want 1: %+v", len(list), list)
	}
	return list[0]
}

// The faster kernel is chosen, kept for other processes and taken by them without a measurement.
func TestFasterKernelIsChosen(t *testing.T) {
	for _, threads := range []int{1, 2} {
		file := filepath.Join(t.TempDir(), "kernels.json")
		e := newTuned(t, threads, tune.Cache, file)
		g := big(1, nil)
		checkProduct(t, e.Engine, g)
		p := e.only(t)
		if !strings.HasPrefix(p.Product, "NN 136x200x160 fp32") || !strings.HasPrefix(p.Kernel, "other") || p.Default != "rule" || p.From != fromTiming || !(p.GFLOPS > p.DefaultGFLOPS) || !(p.DefaultGFLOPS > 0) {
			t.Errorf("%+v", p)
		}
		calls := e.rule.calls.Load()
		e.Multiply(&g.P)
		if e.rule.calls.Load() != calls {
			t.Error("the slower kernel is called after the choice")
		}
		if n := allocs.PerRun(20, func() { e.Multiply(&g.P) }); n != 0 {
			t.Errorf("%v allocations, want 0", n)
		}
		e.Close()

		again := newTuned(t, threads, tune.Cache, file)
		checkProduct(t, again.Engine, g)
		if q := again.only(t); q.Kernel != p.Kernel || q.From != fromCache || q.GFLOPS != p.GFLOPS {
			t.Errorf("the next process has %+v", q)
		}
		if again.rule.calls.Load() != 1 { // MultiplySerial, which knows fixed rules alone
			t.Errorf("the next process measures: %d calls", again.rule.calls.Load())
		}
		again.Close()

		anew := newTuned(t, threads, tune.On, file)
		anew.rule.slow, anew.other.slow = 0, 3*time.Millisecond
		checkProduct(t, anew.Engine, g)
		if q := anew.only(t); !strings.HasPrefix(q.Kernel, "rule") || q.From != fromTiming {
			t.Errorf("anew: %+v", q)
		}
		anew.Close()
		if last := newTuned(t, threads, tune.Cache, file); true {
			last.Multiply(&g.P)
			if q := last.only(t); !strings.HasPrefix(q.Kernel, "rule") || q.From != fromCache {
				t.Errorf("what was measured anew is not kept: %+v", q)
			}
		}
	}
}

// Forms of a product are products of their own, and every candidate computes all of them.
func TestTunedForms(t *testing.T) {
	forms := []func(g *gemmtest.Case){
		func(g *gemmtest.Case) { g.P.TransA = true },
		func(g *gemmtest.Case) { g.P.TransB, g.Bias = true, true },
		func(g *gemmtest.Case) { g.P.TransB, g.Bias, g.Gelu = true, true, true },
		func(g *gemmtest.Case) { g.P.Beta = 1 },
		func(g *gemmtest.Case) { g.P.Beta, g.P.Alpha, g.Bias = 0.5, -2, true },
		func(g *gemmtest.Case) { g.HalfA = true },
		func(g *gemmtest.Case) { g.P.BF16, g.HalfB = true, true },
		func(g *gemmtest.Case) { g.P.M, g.P.N = 8, 5000 },
		func(g *gemmtest.Case) { g.P.M, g.P.N = 5000, 8 },
	}
	for _, threads := range []int{1, 3} {
		e := newTuned(t, threads, tune.Cache, filepath.Join(t.TempDir(), "kernels.json"))
		for i, form := range forms {
			g := big(uint32(i), form)
			checkProduct(t, e.Engine, g)
			checkProduct(t, e.Engine, g)
			if e.Decided() != i+1 {
				t.Fatalf("%v: %d products, want %d", g, e.Decided(), i+1)
			}
		}
		for _, p := range e.Tuning().Products {
			if p.From != fromTiming || !strings.HasPrefix(p.Kernel, "other") {
				t.Errorf("%d threads: %+v", threads, p)
			}
		}
		if len(e.warnings) > 0 {
			t.Errorf("%q", e.warnings)
		}
	}
}

// A kernel that is not faster by the margin, is wrong or fails is not chosen.
func TestBadKernelsAreNotChosen(t *testing.T) {
	rows := []struct {
		name  string
		fault func(e *tuned)
		warns []string
	}{
		{"slower", func(e *tuned) { e.rule.slow, e.other.slow = 0, 3*time.Millisecond }, nil},
		{"wrong", func(e *tuned) { e.other.corrupt = func(m, n int, c []float32) { c[n-1] += 1 } }, []string{"other", "NN 136x200x160 fp32", "must be"}},
		{"wrong by little", func(e *tuned) { e.other.corrupt = func(m, n int, c []float32) { c[3] += 0.02 } }, []string{"other", "column 3"}},
		{"NaN", func(e *tuned) { e.other.corrupt = func(_, _ int, c []float32) { c[5] = float32(math.NaN()) } }, []string{"column 5 is NaN"}},
		{"infinity", func(e *tuned) { e.other.corrupt = func(_, _ int, c []float32) { c[0] = float32(math.Inf(1)) } }, []string{"column 0 is +Inf"}},
		{"panics", func(e *tuned) { e.other.panics = true }, []string{"other", "status 7"}},
	}
	for _, r := range rows {
		for _, threads := range []int{1, 2} {
			e := newTuned(t, threads, tune.Cache, filepath.Join(t.TempDir(), "kernels.json"))
			r.fault(e)
			checkProduct(t, e.Engine, big(1, nil))
			if p := e.only(t); !strings.HasPrefix(p.Kernel, "rule") {
				t.Errorf("%s: %+v", r.name, p)
			}
			if len(r.warns) == 0 {
				if len(e.warnings) > 0 {
					t.Errorf("%s: %q", r.name, e.warnings)
				}
				continue
			}
			if len(e.warnings) != 1 {
				t.Fatalf("%s: %d warnings, want 1: %q", r.name, len(e.warnings), e.warnings)
			}
			for _, want := range r.warns {
				if !strings.Contains(e.warnings[0], want) {
					t.Errorf("%s: %q lacks %q", r.name, e.warnings[0], want)
				}
			}
			calls := e.other.calls.Load()
			checkProduct(t, e.Engine, big(2, func(g *gemmtest.Case) { g.P.M++ }))
			if e.other.calls.Load() != calls {
				t.Errorf("%s: it is called again, for another product", r.name)
			}
		}
	}
}

// A kernel of the fixed rules that is wrong for a shape is replaced there.
func TestWrongDefault(t *testing.T) {
	e := newTuned(t, 1, tune.Cache, filepath.Join(t.TempDir(), "kernels.json"))
	e.rule.slow, e.other.slow = 0, time.Millisecond
	e.rule.corrupt = func(m, n int, c []float32) {
		if n == 200 {
			c[7] = 0
		}
	}
	g := big(1, nil)
	want, _ := gemmtest.Exact(&g.P)
	e.Multiply(&g.P)
	if got := float64(g.P.C[7]); !(math.Abs(got-want[7]) <= 1e-3) {
		t.Errorf("got %g, want %g", got, want[7])
	}
	if p := e.only(t); p.Kernel != "other" {
		t.Errorf("%+v", p)
	}
	if len(e.warnings) != 1 || !strings.Contains(e.warnings[0], "rule is wrong for the product NN 136x200x160 fp32") || !strings.Contains(e.warnings[0], "row 0 column 7 is 0 and must be") {
		t.Errorf("%q", e.warnings)
	}
}

// Operands that would hide a difference, and results that are not finite anyway, are no base for a choice, and no fault of a kernel.
func TestUnusableOperands(t *testing.T) {
	for name, spoil := range map[string]func(p *gemm.Product){
		"zero":     func(p *gemm.Product) { clear(p.A.F32) },
		"NaN":      func(p *gemm.Product) { p.B.F32[9] = float32(math.NaN()) },
		"NaN in C": func(p *gemm.Product) { p.Beta, p.C[9] = 1, float32(math.NaN()) },
	} {
		e := newTuned(t, 1, tune.Cache, filepath.Join(t.TempDir(), "kernels.json"))
		g := big(1, nil)
		spoil(&g.P)
		e.Multiply(&g.P)
		if p := e.only(t); p.Kernel != "rule" || p.From != fromDefault || len(e.warnings) > 0 || e.other.calls.Load() > 0 {
			t.Errorf("%s: %+v, %q", name, p, e.warnings)
		}
	}
}

// A product whose result is rounded, or replaced by an activation, has the kernel of the product without that, and its values.
func TestTunedBare(t *testing.T) {
	e := newTuned(t, 2, tune.Cache, filepath.Join(t.TempDir(), "kernels.json"))
	g := big(1, func(g *gemmtest.Case) { g.P.TransB, g.Bias = true, true })
	half, inPlace, plain := g.P, g.P, g.P
	half.C, half.Half, half.ActivatedHalf, half.Activation = make([]float32, len(g.P.C)), make([]uint16, len(g.P.C)), make([]uint16, len(g.P.C)), vector.ByGELU
	inPlace.C, inPlace.Activation = make([]float32, len(g.P.C)), vector.ByGELU
	inPlace.Activated = inPlace.C
	for _, p := range []*gemm.Product{&half, &inPlace, &plain} {
		e.Multiply(p)
		if x := e.only(t); !strings.HasPrefix(x.Product, "NT 136x200x160 fp32 bias") || strings.Contains(x.Product, "gelu") || !strings.HasPrefix(x.Kernel, "other") || x.From != fromTiming {
			t.Errorf("%+v", x)
		}
	}
	if len(e.warnings) > 0 {
		t.Errorf("%q", e.warnings)
	}
	rounded, activated := make([]uint16, plain.N), make([]float32, plain.N)
	for i := range plain.M {
		at, to := i*plain.LDC, i*plain.LDC+plain.N
		vector.ToBF16(rounded, plain.C[at:to])
		vector.ByGELU.Apply(activated, plain.C[at:to])
		if !slices.Equal(half.Half[at:to], rounded) || !slices.Equal(inPlace.C[at:to], activated) {
			t.Fatalf("row %d has other values", i)
		}
	}
}

// A kernel that is faster for the part that is timed, and slower for the whole, is not chosen.
func TestFastForPartAlone(t *testing.T) {
	for _, most := range []int{0, 2048} {
		g := big(1, func(g *gemmtest.Case) { g.P.M, g.P.N, g.P.K = 2048, 64, 64 })
		e := newTuned(t, 1, tune.Cache, filepath.Join(t.TempDir(), "kernels.json"))
		e.rule.slow, e.other.most = 20*time.Millisecond, most // less than the time from which on it has no turn at all
		e.Multiply(&g.P)
		want := "other"
		if most > 0 {
			want = "rule"
		}
		if p := e.only(t); p.Kernel != want || p.From != fromTiming {
			t.Errorf("slow from %d rows on: %+v", most, p)
		}
		e.Close()
	}
}

// What follows a product is done in the tiles of the built-in product: where that is the rule, no library is tried for it.
func TestTunedFinished(t *testing.T) {
	e := newTuned(t, 1, tune.Cache, filepath.Join(t.TempDir(), "kernels.json"))
	if e.float = gemm.New(); e.float == nil {
		t.Skip("the built-in product has no tiles on this processor")
	}
	e.floatLimit = math.MaxInt
	g := big(1, func(g *gemmtest.Case) { g.P.TransB, g.Bias = true, true })
	half := g.P
	half.C, half.Half = make([]float32, len(g.P.C)), make([]uint16, len(g.P.C))
	e.Multiply(&half)
	if x := e.only(t); !strings.Contains(x.Product, "finished") || !strings.HasPrefix(x.Kernel, library.Builtin) || e.other.calls.Load() > 0 {
		t.Errorf("%+v, %d calls of a library", x, e.other.calls.Load())
	}
	e.Multiply(&g.P)
	if list := e.Tuning().Products; len(list) != 2 || e.other.calls.Load() == 0 {
		t.Errorf("%+v, %d calls of a library for the product alone", list, e.other.calls.Load())
	}
}

// Without time for a measurement the fixed rules stay, for the life of the engine and for later processes, until one measures anew.
func TestBudget(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kernels.json")
	e := newTuned(t, 1, tune.Cache, file)
	e.tuner.left = time.Millisecond
	checkProduct(t, e.Engine, big(1, nil))
	e.tuner.left = time.Minute // too late
	checkProduct(t, e.Engine, big(1, nil))
	if p := e.only(t); p.From != fromDefault || p.Kernel != "rule" || e.other.calls.Load() > 0 {
		t.Errorf("%+v", p)
	}
	e.Close()
	e = newTuned(t, 1, tune.Cache, file)
	checkProduct(t, e.Engine, big(1, nil))
	if p := e.only(t); p.From != fromCache || p.Kernel != "rule" || e.other.calls.Load() > 0 {
		t.Errorf("later: %+v", p)
	}
	e.Close()
	e = newTuned(t, 1, tune.On, file)
	checkProduct(t, e.Engine, big(1, nil))
	if p := e.only(t); p.From != fromTiming || p.Kernel != "other" {
		t.Errorf("anew: %+v", p)
	}
}

// A run goes on with the kernels that it began with, whatever the cache says and what is faster now.
func TestFollow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kernels.json")
	e := newTuned(t, 2, tune.Cache, file)
	checkProduct(t, e.Engine, big(1, nil))
	e.tuner.left = 0
	checkProduct(t, e.Engine, big(2, func(g *gemmtest.Case) { g.P.K++ })) // not measured
	kept := e.Chosen()
	if len(kept.Products) != 2 || kept.Engine != e.Describe() {
		t.Fatalf("%+v", kept)
	}
	e.Close()

	on := newTuned(t, 2, tune.On, file)
	on.rule.slow, on.other.slow = 0, 3*time.Millisecond
	on.Follow(kept, false)
	checkProduct(t, on.Engine, big(1, nil))
	checkProduct(t, on.Engine, big(2, func(g *gemmtest.Case) { g.P.K++ }))
	checkProduct(t, on.Engine, big(3, func(g *gemmtest.Case) { g.P.M++ }))
	for _, p := range on.Tuning().Products {
		want, has := kept.Products[p.Product]
		if has && (p.Kernel != want || p.From != fromRun) || !has && (p.From != fromTiming || !strings.HasPrefix(p.Kernel, "rule")) {
			t.Errorf("%+v, the run has %q", p, want)
		}
	}
	if now := on.Chosen(); len(now.Products) != 3 {
		t.Errorf("the run keeps %v", now.Products)
	}

	alone := newTuned(t, 2, tune.On, file)
	alone.Follow(kept, true)
	checkProduct(t, alone.Engine, big(3, func(g *gemmtest.Case) { g.P.M++ }))
	if p := alone.only(t); p.From != fromDefault {
		t.Errorf("alone: %+v", p)
	}

	other := newTuned(t, 1, tune.Cache, file)
	other.Follow(kept, false)
	checkProduct(t, other.Engine, big(1, nil))
	if p := other.only(t); p.From != fromTiming {
		t.Errorf("with other threads: %+v", p)
	}
}

// A folder that cannot be written to ends measuring, but where it is asked for at each start.
func TestCacheFolderThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "no folder")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(file, "kernels.json")
	e := newTuned(t, 1, tune.Cache, file)
	checkProduct(t, e.Engine, big(1, nil))
	checkProduct(t, e.Engine, big(2, func(g *gemmtest.Case) { g.P.M++ }))
	if len(e.warnings) != 1 || !strings.Contains(e.warnings[0], "cannot be kept") || !strings.Contains(e.warnings[0], file[:len(file)-13]) {
		t.Errorf("%q", e.warnings)
	}
	if e.other.calls.Load() > 0 {
		t.Error("a product is measured")
	}
	e = newTuned(t, 1, tune.On, file)
	checkProduct(t, e.Engine, big(1, nil))
	if p := e.only(t); p.Kernel != "other" {
		t.Errorf("%+v", p)
	}
	e.Close()
	if len(e.warnings) != 1 || !strings.Contains(e.warnings[0], "are not kept") {
		t.Errorf("%q", e.warnings)
	}
}

// A process that ended while a library multiplied leaves it out for that product.
func TestEndedProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kernels.json")
	e := newTuned(t, 1, tune.Cache, file)
	g := big(1, nil)
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*.trying"))
	if len(left) != 0 {
		t.Fatalf("%q before anything is tried", left)
	}
	e.other.corrupt = func(int, int, []float32) {
		left, _ = filepath.Glob(filepath.Join(filepath.Dir(file), "*.trying"))
		if e.other.calls.Load() == 1 && len(left) == 1 {
			text, _ := os.ReadFile(left[0])
			_ = os.WriteFile(filepath.Join(filepath.Dir(file), "kernels-0-1.trying"), text, 0o666) // what a process without a number leaves
		}
	}
	e.Multiply(&g.P)
	e.tuner.table.Close()

	e = newTuned(t, 1, tune.Cache, file)
	if len(e.warnings) != 1 || !strings.Contains(e.warnings[0], "other is left out for the product NN 136x200x160 fp32") || !strings.Contains(e.warnings[0], "a process ended while it was tried") {
		t.Errorf("%q", e.warnings)
	}
	checkProduct(t, e.Engine, g)
	if p := e.only(t); p.Kernel != "rule" || e.other.calls.Load() > 0 {
		t.Errorf("%+v", p)
	}
	checkProduct(t, e.Engine, big(2, func(g *gemmtest.Case) { g.P.M++ }))
	if e.other.calls.Load() == 0 {
		t.Error("it is left out for other products")
	}
	e.Close()
	if left, _ = filepath.Glob(filepath.Join(filepath.Dir(file), "*.trying")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	e = newTuned(t, 1, tune.On, file)
	checkProduct(t, e.Engine, g)
	if e.other.calls.Load() > 0 || len(e.warnings) != 1 {
		t.Errorf("it is tried again later: %q", e.warnings)
	}
}

// Choices need a program that has libraries tried in a child process.
func TestTuneIsOff(t *testing.T) {
	for _, o := range []Options{{Threads: 1}, {Threads: 1, Tune: tune.Off}, {Threads: 1, Tune: tune.Cache}, {Threads: 1, Tune: tune.On, Backend: library.Plain}} {
		e, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		g := big(1, nil)
		e.Multiply(&g.P)
		s := e.Tuning()
		if s.Mode != tune.Off || e.Decided() != 0 || (s.Reason == "") != (o.Tune == "" || o.Tune == tune.Off) {
			t.Errorf("%+v: %+v", o, s)
		}
		e.Close()
	}
	if _, err := New(Options{Tune: "yes"}); err == nil || !strings.Contains(err.Error(), `"yes"`) {
		t.Errorf("%v", err)
	}
}
