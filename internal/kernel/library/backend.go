package library

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"

	"github.com/geoalign/geoalign/internal/dynlib"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
)

// Names of the backends.
const (
	Auto     = "auto"
	OneDNN   = "onednn"
	OpenBLAS = "openblas"
	MKL      = "mkl"
	Builtin  = "builtin"
	Plain    = "plain"
)

// Info says what became of one backend on this machine.
type Info struct {
	Name    string // as Options.Backend takes it
	Found   bool   // can be used
	Version string // empty where unknown
	File    string // the library as the loader found it
	Reason  string // why it cannot be used
	Install string // what to do to get it
	// Warnings tell of files that were found but could not be used.
	Warnings []string
}

// librarySpec says how to find one library.
type librarySpec struct {
	name    string
	env     string // variable that may name the file
	files   []string
	load    func(*dynlib.Library) (gemm.Backend, error)
	install string
}

// librarySpecs lists the libraries in the order in which "auto" tries them.
var librarySpecs = []librarySpec{
	{OneDNN, "GEOALIGN_ONEDNN", oneDNNNames, loadOneDNN,
		"install oneDNN (Debian, Ubuntu: apt-get install libdnnl2 or libdnnl3; Fedora: dnf install onednn; conda: conda install onednn) or set GEOALIGN_ONEDNN to the file"},
	{OpenBLAS, "GEOALIGN_OPENBLAS", openBLASNames, loadOpenBLAS,
		"install OpenBLAS (Debian, Ubuntu: apt-get install libopenblas0; Fedora: dnf install openblas) or set GEOALIGN_OPENBLAS to the file"},
	{MKL, "GEOALIGN_MKL", mklNames, loadMKL,
		"install MKL (Debian: apt-get install libmkl-rt; pip: pip install mkl) or set GEOALIGN_MKL to libmkl_rt"},
}

// oneThread tells the thread runtimes that the libraries stand on to use one
// thread a call: the engine splits the work itself. It must run before the
// libraries are loaded.
var oneThread = sync.OnceFunc(func() {
	for _, v := range [][2]string{
		{"OMP_NUM_THREADS", "1"}, {"OPENBLAS_NUM_THREADS", "1"}, {"GOTO_NUM_THREADS", "1"},
		{"MKL_NUM_THREADS", "1"}, {"MKL_THREADING_LAYER", "SEQUENTIAL"},
	} {
		// Without it a library oversubscribes the machine but stays correct.
		_ = dynlib.SetEnv(v[0], v[1], true)
	}
})

// loaded keeps each library that was loaded, by name and by the value of its variable.
var loaded struct {
	sync.Mutex
	m map[string]Loaded
}

// Loaded is a library in use.
type Loaded struct {
	Backend gemm.Backend
	Info    Info
}

// find loads the library of s once and tests it.
func (s librarySpec) find() Loaded {
	loaded.Lock()
	defer loaded.Unlock()
	key := s.name + "=" + os.Getenv(s.env)
	if l, ok := loaded.m[key]; ok {
		return l
	}
	oneThread()
	l := s.search()
	if loaded.m == nil {
		loaded.m = map[string]Loaded{}
	}
	loaded.m[key] = l
	return l
}

// ordinaryBuild says what to do where a static program is asked for a library.
const ordinaryBuild = "use builtin or auto, or the trainer of make build on a system with the C library glibc"

// search tries the file that the variable names, then the usual ones.
func (s librarySpec) search() Loaded {
	info := Info{Name: s.name, Install: s.install}
	if dynlib.Static {
		info.Install, info.Reason = ordinaryBuild, dynlib.ErrStatic.Error()
		return Loaded{nil, info}
	}
	use, warnings := s.trial().Find()
	info.Warnings = warnings
	if b, ok := use.(gemm.Backend); ok {
		info.Found, info.Install = true, ""
		info.Version, info.File = b.Info()
		return Loaded{b, info}
	}
	info.Reason = "no library found"
	if len(info.Warnings) > 0 {
		info.Reason = info.Warnings[len(info.Warnings)-1]
	}
	return Loaded{nil, info}
}

func init() {
	for _, s := range librarySpecs {
		dynlib.Register(s.trial())
	}
}

// trial is how a file of s is tried.
func (s librarySpec) trial() dynlib.Trial {
	t := dynlib.Trial{Name: s.name, Env: s.env, Files: s.files, Prepare: oneThread}
	t.Try = func(file string, begin func(step string)) (any, string) {
		lib, warning := t.Load(file, begin)
		if lib == nil {
			return nil, warning
		}
		begin("asking it for its version")
		b, err := s.load(lib)
		if err == nil {
			begin("its self-test")
			err = selfTest(b)
		}
		if err != nil {
			return nil, fmt.Sprintf("%s is not used: %v", file, err)
		}
		return b, ""
	}
	t.Further = func(use any, begin func(step string)) {
		if h, ok := use.(gemm.HalfBackend); ok {
			begin("its self-test in bfloat16")
			h.SupportsBF16()
		}
	}
	t.Path = func(use any) string {
		_, path := use.(gemm.Backend).Info()
		return path
	}
	return t
}

// builtin returns the built-in kernels for the instruction set in use.
func builtin() Loaded {
	b := gemm.Builtin()
	info := Info{Name: Builtin, Found: true}
	info.Version, _ = b.Info()
	return Loaded{b, info}
}

// Choose returns the backend called name and what to warn of.
func Choose(name string) (Loaded, []string, error) {
	switch name {
	case Plain:
		return Loaded{gemm.Plain{}, Info{Name: Plain, Found: true}}, nil, nil
	case Builtin:
		return builtin(), nil, nil
	case "", Auto:
		var warnings []string
		for _, s := range librarySpecs {
			l := s.find()
			warnings = append(warnings, l.Info.Warnings...)
			if l.Backend != nil {
				return l, warnings, nil
			}
		}
		return builtin(), warnings, nil
	}
	for _, s := range librarySpecs {
		if s.name != name {
			continue
		}
		l := s.find()
		if l.Backend == nil {
			return l, nil, fmt.Errorf("kernel: backend %q cannot be used (%s): %s", name, l.Info.Reason, l.Info.Install)
		}
		return l, l.Info.Warnings, nil
	}
	return Loaded{}, nil, fmt.Errorf("kernel: unknown backend %q: choose auto, onednn, openblas, mkl, builtin or plain",
		name)
}

// Found returns every library that can be used, in the order in which "auto" prefers them, and what
// to warn of.
func Found() (list []Loaded, warnings []string) {
	for _, s := range librarySpecs {
		l := s.find()
		warnings = append(warnings, l.Info.Warnings...)
		if l.Backend != nil {
			list = append(list, l)
		}
	}
	return list, warnings
}

// Open loads and tests a file of the library called name, without a search and without a child process.
func Open(name, file string) (Loaded, error) {
	for _, s := range librarySpecs {
		if s.name != name {
			continue
		}
		oneThread()
		use, warning := s.trial().Try(file, func(string) {})
		if b, ok := use.(gemm.Backend); ok {
			info := Info{Name: name, Found: true}
			info.Version, info.File = b.Info()
			return Loaded{b, info}, nil
		}
		return Loaded{}, errors.New(warning)
	}
	return Loaded{}, fmt.Errorf("kernel: no library is called %q", name)
}

// Probe looks for every backend and tells what it found, in the order in which
// "auto" prefers them. The libraries that it finds stay loaded.
func Probe() []Info {
	var out []Info
	for _, s := range librarySpecs {
		out = append(out, s.find().Info)
	}
	return append(out, builtin().Info, Info{Name: Plain, Found: true})
}

// selfTest compares a backend with the plain product on a few small shapes, so
// that a library with another interface or a defect is not trusted.
func selfTest(b gemm.Backend) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("self-test: %v", v)
		}
	}()
	shapes := [][3]int{{1, 1, 1}, {3, 5, 7}, {17, 33, 9}, {40, 70, 50}}
	for _, s := range shapes {
		for t := range 4 {
			if err := selfTestOne(b, t&1 != 0, t&2 != 0, s[0], s[1], s[2]); err != nil {
				return err
			}
		}
	}
	return nil
}

func selfTestOne(b gemm.Backend, transA, transB bool, m, n, k int) error {
	lda, ldb, ldc, x, y := operands(transA, transB, m, n, k)
	for _, beta := range []float32{0, 1} {
		got, want := Values(m*ldc, 3), Values(m*ldc, 3)
		if beta == 0 {
			// Must not be read.
			for i := range got {
				if i%ldc < n {
					got[i] = float32(math.NaN())
				}
			}
		}
		b.SGEMM(transA, transB, m, n, k, 0.5, x, lda, y, ldb, beta, got, ldc)
		gemm.Plain{}.SGEMM(transA, transB, m, n, k, 0.5, x, lda, y, ldb, beta, want, ldc)
		for i := range want {
			if d := math.Abs(float64(got[i] - want[i])); !(d <= 1e-5*float64(k+1)) {
				return errors.New("self-test: wrong result")
			}
		}
	}
	return nil
}

// operands returns the values of A and B of a self-test and leading dimensions above the
// widths of the rows.
func operands(transA, transB bool, m, n, k int) (lda, ldb, ldc int, a, b []float32) {
	lda, ldb, ldc = k+1, n+2, n+3
	ra, rb := m, k
	if transA {
		lda, ra = m+1, k
	}
	if transB {
		ldb, rb = k+2, n
	}
	return lda, ldb, ldc, Values(ra*lda, 1), Values(rb*ldb, 2)
}

// Values returns n values in [-1, 1) from a fixed sequence.
func Values(n int, seed uint32) []float32 {
	out := make([]float32, n)
	for i := range out {
		seed = seed*1664525 + 1013904223 // Numerical Recipes, section 7.1
		out[i] = float32(int32(seed)) / (1 << 31)
	}
	return out
}
