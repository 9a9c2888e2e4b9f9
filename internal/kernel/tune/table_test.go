package tune

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/internal/usercache"
)

var here = Environment{Processor: "Chip 9", Instructions: "avx512", Threads: 2, Program: "v1", Kernels: []string{"builtin", "onednn 2.6.3"}}

var fast = Choice{Kernel: "onednn", GFLOPS: 200, Default: "builtin", DefaultGFLOPS: 150}

// saved writes a cache with one product and returns its path.
func saved(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kernels.json")
	x := NewTable(here, Cache, path)
	x.Add("NN 1x2x3 fp32", fast)
	if err := x.Save(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTableIsKept(t *testing.T) {
	path := saved(t)
	x := NewTable(here, Cache, path)
	if c, ok := x.Find("NN 1x2x3 fp32"); !ok || c != fast || x.Known() != 1 || len(x.Notes()) > 0 {
		t.Errorf("%+v %v", c, ok)
	}
	if _, ok := NewTable(here, On, path).Find("NN 1x2x3 fp32"); ok {
		t.Error("on takes what the file has")
	}
}

// A cache of something else, or that cannot be read, is passed over with a note and replaced or added to.
func TestForeignAndDamagedFiles(t *testing.T) {
	others := map[string]struct {
		change func(e *Environment)
		note   string
	}{
		"processor":    {func(e *Environment) { e.Processor = "Chip 8" }, "of another processor"},
		"instructions": {func(e *Environment) { e.Instructions = "avx2" }, ""},
		"threads":      {func(e *Environment) { e.Threads = 1 }, ""},
		"program":      {func(e *Environment) { e.Program = "v2" }, "of another version of this program"},
		"library":      {func(e *Environment) { e.Kernels = []string{"builtin", "onednn 3.1"} }, "of other libraries"},
		"no library":   {func(e *Environment) { e.Kernels = []string{"builtin"} }, "of other libraries"},
	}
	for name, o := range others {
		path := saved(t)
		env := here
		o.change(&env)
		x := NewTable(env, Cache, path)
		if notes := x.Notes(); x.Known() > 0 || (len(notes) == 0) != (o.note == "") || len(notes) > 0 && !strings.Contains(notes[0], o.note) {
			t.Errorf("another %s: %q", name, notes)
		}
		x.Add("NT 1x2x3 fp32", fast)
		if err := x.Save(); err != nil {
			t.Fatal(err)
		}
		for _, e := range []Environment{here, env} {
			if NewTable(e, Cache, path).Known() != 1 {
				t.Errorf("another %s: %+v is not known any more", name, e)
			}
		}
	}
	for name, text := range map[string]string{
		"empty": "", "cut": `{"format": 3, "machines": [{"envi`, "of another kind": `[1, 2]`, "of another format": `{"format": 99, "machines": []}`, "bytes": "\x00\x01\x02",
		"wrong types": `{"format": 3, "machines": [{"products": {"NN": 7}}]}`, "NaN": `{"format": 3, "machines": [{"products": {"NN": {"gflops": NaN}}}]}`,
		"too large a number": `{"format": 3, "machines": [{"products": {"NN": {"gflops": 1e999}}}]}`, "wrong names": `{"format": 3, "machines": [{"passed": {"NN": "mkl"}}]}`,
		"too large": `{"format": 3, "machines": [` + strings.Repeat(" ", usercache.Most) + `]}`,
	} {
		path := saved(t)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		x := NewTable(here, Cache, path)
		if notes := x.Notes(); len(notes) != 1 || !strings.Contains(notes[0], path+" cannot be used") || len(x.Notes()) > 0 {
			t.Errorf("%s: %q", name, notes)
		}
		x.Add("NN 1x2x3 fp32", fast)
		if err := x.Save(); err != nil {
			t.Fatal(err)
		}
		if NewTable(here, Cache, path).Known() != 1 {
			t.Errorf("%s: the file is not replaced", name)
		}
	}
}

// What became of trial processes is kept beside the choices, and what several processes find is kept together.
func TestTried(t *testing.T) {
	path := saved(t)
	tables := []*Table{NewTable(here, Cache, path), NewTable(here, On, path)}
	for i, x := range tables {
		if x.Unsaved() {
			t.Error("there is something to save before anything is tried")
		}
		x.Tried("NN 1x2x3 fp32", fmt.Sprint("mkl ", i), true)
		x.Tried("NN 1x2x3 fp32", fmt.Sprint("openblas ", i), false)
		if err := x.Save(); err != nil || x.Unsaved() {
			t.Fatal(err)
		}
	}
	for _, mode := range []string{Cache, On} {
		x := NewTable(here, mode, path)
		for i := range tables {
			mkl, blas := fmt.Sprint("mkl ", i), fmt.Sprint("openblas ", i)
			if !x.Passed("NN 1x2x3 fp32", mkl) || x.Ended("NN 1x2x3 fp32", mkl) || x.Passed("NN 1x2x3 fp32", blas) || !x.Ended("NN 1x2x3 fp32", blas) || x.Passed("NN 1x2x4 fp32", mkl) {
				t.Errorf("%s: %+v", mode, x)
			}
		}
		if notes := x.Notes(); len(notes) != 2 || !strings.Contains(notes[0], "openblas 0 is left out for the product NN 1x2x3 fp32") {
			t.Errorf("%q", notes)
		}
	}
	other := here
	other.Kernels = []string{"builtin"}
	if NewTable(other, Cache, path).Passed("NN 1x2x3 fp32", "mkl 0") {
		t.Error("it holds for other libraries")
	}
}

// Fields that are not there are no crash.
func TestSparseFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kernels.json")
	env, _ := json.Marshal(here)
	for _, text := range []string{`{"format": 3}`, `{"format": 3, "machines": [{}]}`, `{"format": 3, "machines": [{"environment": ` + string(env) + `, "products": null, "ended": null}]}`} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		x := NewTable(here, Cache, path)
		x.Add("NN 1x2x3 fp32", fast)
		if err := x.Save(); err != nil {
			t.Fatal(err)
		}
		if NewTable(here, Cache, path).Known() != 1 {
			t.Errorf("%s: not kept", text)
		}
	}
}

// Of two processes that measure the same product the file keeps the first, which was taken elsewhere meanwhile, and what each of them adds.
func TestConcurrentTables(t *testing.T) {
	path := saved(t)
	var all sync.WaitGroup
	for i := range 8 {
		x := NewTable(here, Cache, path)
		x.Add("NN 1x2x3 fp32", Choice{Kernel: "late"})
		x.Add(fmt.Sprintf("NN %dx2x3 fp32", 10+i), fast)
		all.Go(func() {
			if err := x.Save(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	x := NewTable(here, Cache, path)
	if c, _ := x.Find("NN 1x2x3 fp32"); c != fast || len(x.Notes()) > 0 || x.Known() != 1+8 {
		t.Errorf("%+v of %d", c, x.Known())
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.tmp")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kernels.json")
	var f file
	f.Format = format
	for i := range mostMachines + 5 {
		env := here
		env.Threads = 100 + i
		f.entry(env).Written = time.Unix(int64(i), 0)
	}
	for i := range most + 1 {
		f.Machines[0].Products[fmt.Sprint(i)] = fast
	}
	if err := usercache.Write(path, f); err != nil {
		t.Fatal(err)
	}
	x := NewTable(here, Cache, path)
	x.Add("NN 1x2x3 fp32", fast)
	if err := x.Save(); err != nil {
		t.Fatal(err)
	}
	f, err := read(path)
	if err != nil || len(f.Machines) != mostMachines || f.of(here) == nil {
		t.Errorf("%d machines, %v", len(f.Machines), err)
	}
	for _, m := range f.Machines {
		if m.Environment.Threads < 106 && m.Environment.Threads != 2 {
			t.Errorf("an old one stays: %+v", m.Environment)
		}
	}
}

// What a process tried counts when it has ended, and not while it goes on.
func TestMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kernels.json")
	gone := exec.Command(os.Args[0], "-test.run=^$")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	host, _ := os.Hostname()
	leave := func(pid int, m tried) string {
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf("kernels-%d-1%s", pid, markSuffix))
		if err := os.WriteFile(name, text, 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	m := tried{host, here, "NN 1x2x3 fp32", "mkl"}
	name := leave(os.Getppid(), m)
	if x := NewTable(here, Cache, path); x.Ended(m.Product, m.Kernel) {
		t.Error("a process that goes on counts as ended")
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	m.Host = "elsewhere"
	leave(gone.Process.Pid, m)
	if x := NewTable(here, Cache, path); x.Ended(m.Product, m.Kernel) {
		t.Error("a process of another machine counts")
	}
	m.Host = host
	name = leave(gone.Process.Pid, m)
	other := here
	other.Threads++
	if x := NewTable(other, Cache, path); x.Ended(m.Product, m.Kernel) {
		t.Error("it counts in another environment")
	}
	for i := range 2 {
		x := NewTable(here, On, path)
		if notes := x.Notes(); !x.Ended(m.Product, m.Kernel) || x.Ended(m.Product, "onednn") || len(notes) != 1 || !strings.Contains(notes[0], "mkl is left out for the product NN 1x2x3 fp32") {
			t.Errorf("start %d: %q", i, notes)
		}
		if err := x.Save(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(name); err == nil {
			t.Error("the mark is left")
		}
	}
}

// A key is all that tells two products apart.
// The mark of a process says what it tries and nothing else, and goes with the table.
func TestOwnMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kernels.json")
	x := NewTable(here, Cache, path)
	for range 2 {
		if err := x.Open(); err != nil {
			t.Fatal(err)
		}
	}
	marks := func() []string {
		list, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"+markSuffix))
		return list
	}
	list := marks()
	if len(list) != 1 {
		t.Fatalf("marks after two calls of Open: %q", list)
	}
	for _, product := range []string{"NN 100x200x300 fp32", "NN 1x2x3 fp32"} {
		x.Begin(product, "mkl")
		var m tried
		if err := usercache.Read(list[0], &m); err != nil || m.Product != product || m.Kernel != "mkl" || !m.Environment.equal(here) {
			t.Errorf("%+v, %v", m, err)
		}
	}
	if NewTable(here, Cache, path).Ended("NN 1x2x3 fp32", "mkl") {
		t.Error("it counts in the process itself")
	}
	x.End()
	if text, err := os.ReadFile(list[0]); err != nil || len(text) > 0 {
		t.Errorf("after End: %q, %v", text, err)
	}
	x.Close()
	if list := marks(); len(list) > 0 {
		t.Errorf("after Close: %q", list)
	}
}

// A process may have the number of the one that has ended, as the first one of a container has at each start.
func TestMarkOfTheSameNumber(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kernels.json")
	host, _ := os.Hostname()
	text, _ := json.Marshal(tried{host, here, "NN 1x2x3 fp32", "mkl"})
	name := filepath.Join(filepath.Dir(path), fmt.Sprintf("kernels-%d-1%s", os.Getpid(), markSuffix))
	if err := os.WriteFile(name, text, 0o666); err != nil {
		t.Fatal(err)
	}
	if !NewTable(here, Cache, path).Ended("NN 1x2x3 fp32", "mkl") {
		t.Error("the mark does not count")
	}
}

// A folder may be called as a pattern of others.
func TestMarkInAnyFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "[of]")
	host, _ := os.Hostname()
	text, _ := json.Marshal(tried{host, here, "NN 1x2x3 fp32", "mkl"})
	if err := errors.Join(os.Mkdir(dir, 0o777), os.WriteFile(filepath.Join(dir, "kernels-0-1"+markSuffix), text, 0o666)); err != nil {
		t.Fatal(err)
	}
	if !NewTable(here, Cache, filepath.Join(dir, "kernels.json")).Ended("NN 1x2x3 fp32", "mkl") {
		t.Error("the mark does not count")
	}
}

// What has ended a process is added to a file that knows of none, and a mark that nobody can read goes when it is old.
func TestMarkBesideSparseFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kernels.json")
	env, _ := json.Marshal(here)
	if err := os.WriteFile(path, []byte(`{"format": 3, "machines": [{"environment": `+string(env)+`, "ended": null}]}`), 0o666); err != nil {
		t.Fatal(err)
	}
	dir, host := filepath.Dir(path), ""
	host, _ = os.Hostname()
	text, _ := json.Marshal(tried{host, here, "NN 1x2x3 fp32", "mkl"})
	old := time.Now().Add(-2 * markAge)
	for name, text := range map[string]string{"kernels-x-1": string(text), "kernels-x-2": "{"} {
		if err := os.WriteFile(filepath.Join(dir, name+markSuffix), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, name+markSuffix), old, old); err != nil {
			t.Fatal(err)
		}
	}
	x := NewTable(here, Cache, path)
	if !x.Ended("NN 1x2x3 fp32", "mkl") {
		t.Error("the mark does not count")
	}
	if err := x.Save(); err != nil {
		t.Fatal(err)
	}
	if list, _ := filepath.Glob(filepath.Join(dir, "*"+markSuffix)); len(list) > 0 {
		t.Errorf("left: %q", list)
	}
	if !NewTable(here, Cache, path).Ended("NN 1x2x3 fp32", "mkl") {
		t.Error("it is not kept")
	}
}

func TestKey(t *testing.T) {
	f, h := make([]float32, 64), make([]uint16, 64)
	base := gemm.Product{M: 2, N: 3, K: 4, Alpha: 1, A: gemm.Matrix{F32: f, LD: 4}, B: gemm.Matrix{F32: f, LD: 3}, C: f, LDC: 3}
	seen := map[string]string{}
	for name, change := range map[string]func(p *gemm.Product){
		"NN 2x3x4 fp32": func(*gemm.Product) {},
		"TN 2x3x4 fp32": func(p *gemm.Product) { p.TransA, p.A.LD = true, 2 },
		"NT 2x3x4 fp32 bias gelu": func(p *gemm.Product) {
			p.TransB, p.B.LD, p.Bias, p.Activated, p.Activation = true, 4, f[:3], f, vector.ByGELU
		},
		"NN 2x3x4 fp32 added":              func(p *gemm.Product) { p.Beta = 1 },
		"NN 2x3x4 bf16":                    func(p *gemm.Product) { p.BF16 = true },
		"NN 2x3x4 bf16 A stored bf16":      func(p *gemm.Product) { p.BF16, p.A = true, gemm.Matrix{BF16: h, LD: 4} },
		"NN 2x3x4 fp32 B stored bf16":      func(p *gemm.Product) { p.B = gemm.Matrix{BF16: h, LD: 3} },
		"NN 3x3x4 fp32":                    func(p *gemm.Product) { p.M = 3 },
		"NN 2x3x5 fp32 strides 8 3 3":      func(p *gemm.Product) { p.K, p.A.LD = 5, 8 },
		"NN 2x3x4 fp32 strides 4 16 3":     func(p *gemm.Product) { p.B.LD = 16 },
		"NN 2x3x4 fp32 bias strides 4 3 8": func(p *gemm.Product) { p.LDC, p.Bias = 8, f[:3] },
	} {
		p := base
		change(&p)
		k := KeyOf(&p)
		if k.String() != name {
			t.Errorf("got %q, want %q", k, name)
		}
		if other, has := seen[k.String()]; has {
			t.Errorf("%s and %s have one key", name, other)
		}
		seen[k.String()] = name
	}
	k := KeyOf(&base)
	if k.Finished = true; k.String() != "NN 2x3x4 fp32 finished" {
		t.Errorf("got %q", k)
	}
	if g := KeyOf(&base).GFLOP(); !(math.Abs(g-48e-9) <= 1e-15) {
		t.Errorf("%g GFLOP", g)
	}
}
