package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/gemm/gemmtest"
)

// TestProcessor reads a text of the form that Linux gives (arch/x86/kernel/cpu/proc.c).
func TestProcessor(t *testing.T) {
	const text = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\nstepping\t: 1\n" +
		"flags\t\t: fpu avx2 avx512f avx512_bf16 avx512_vnni sse4_2\n\nprocessor\t: 1\nmodel name\t: other\n"
	h := processor(text)
	if h.Model != "AMD EPYC" || h.Vendor != "AuthenticAMD" || h.Family != 26 || h.Number != 2 || h.Stepping != 1 ||
		!slices.Equal(h.Sets, []string{"avx2", "avx512f", "avx512_bf16", "avx512_vnni"}) {
		t.Errorf("got %+v", h)
	}
	if h := processor(""); h.Model != "" || h.Sets != nil {
		t.Errorf("of no text: %+v", h)
	}
	if h := ThisMachine(); h.Model == "" || h.CPUs < 1 || h.System == "" {
		t.Errorf("this machine: %+v", h)
	}
}

// TestMeasureProducts measures every product of the table where that takes no minutes.
func TestMeasureProducts(t *testing.T) {
	if !cpu.HasAVX512 || testing.Short() {
		t.Skip("takes long without vectors of 512 bits")
	}
	list, err := measureProducts(t.Context(), Options{Product: time.Microsecond})
	if err != nil || len(list) == 0 || len(list)%len(gemmtest.Shapes) != 0 {
		t.Fatalf("%d products, %v", len(list), err)
	}
	for _, p := range list {
		if !(p.GFLOPS > 0) || p.Name == "" || p.Kernel == "" {
			t.Errorf("got %+v", p)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := measureProducts(ctx, Options{Product: time.Microsecond}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestCaches(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"index0/level": "1\n", "index0/type": "Data\n", "index0/size": "48K\n", "index1/level": "9\n"} {
		file := filepath.Join(dir, name)
		check.OK(t, os.MkdirAll(filepath.Dir(file), 0o755))
		check.OK(t, os.WriteFile(file, []byte(text), 0o644))
	}
	if got := caches(dir); !slices.Equal(got, []string{"L1 Data 48K"}) {
		t.Errorf("got %q", got)
	}
}

// TestMeasureMachineInterrupted keeps what was measured before an interruption.
func TestMeasureMachineInterrupted(t *testing.T) {
	cfg := check.Get(config.Load(tiny, nil))(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := Options{Steps: 1, Peak: time.Millisecond, Row: func(string) { cancel() }}
	m, err := MeasureMachine(ctx, []config.Config{cfg, cfg}, o)
	if !errors.Is(err, context.Canceled) || len(m.Steps) != 1 || m.Complete {
		t.Errorf("got %v and %+v", err, m)
	}
}

// machineOf is a machine with one step of so many samples per second.
func machineOf(family int, samples float64) Machine {
	return Machine{Hardware: Hardware{Model: "P", Family: family, Number: 2, CPUs: 2}, Steps: []Result{{Config: "c", Precision: "fp32", Samples: samples}},
		Products: []Product{{"NT 1x1x1", "builtin", 3}}}
}

func TestCompareMachine(t *testing.T) {
	c, err := CompareMachine("f", machineOf(26, 10), machineOf(26, 8))
	if err != nil || len(c.Rows) != 2 || c.Rows[0].Ratio != 0.8 || c.Rows[1].Ratio != 1 {
		t.Fatalf("got %+v, %v", c, err)
	}
	if got := c.Below("training step", 0.9); len(got) != 1 || got[0].Name != "c fp32" {
		t.Errorf("slower: %+v", got)
	}
	if got := c.Below("training step", 0.8); got != nil {
		t.Errorf("slower than 0.8: %+v", got)
	}
	check.Fails(CompareMachine("f", machineOf(25, 10), machineOf(26, 8)))(t, "another kind of machine")
}

func TestMachineTable(t *testing.T) {
	other := machineOf(25, 5)
	other.Name, other.Steps[0].Precision = "Zen 4", "bf16"
	got := MachineTable([]Machine{machineOf(26, 10), other})
	for _, want := range []string{"| P | P | 26, 2 |", "| c fp32 | 10 |  |  |  |  |  |  |  |\n", "| c bf16 |  |  |  |  | 5 |", "Zen 4 samples/s"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// TestMachinesDocumented compares the table of docs/benchmarks.md with the files that it is of.
func TestMachinesDocumented(t *testing.T) {
	list := check.Get(ReadMachines("../docs/machines"))(t)
	text := check.Get(os.ReadFile("../docs/benchmarks.md"))(t)
	if table := MachineTable(list); !strings.Contains(string(text), "\n"+table) {
		t.Errorf("docs/benchmarks.md lacks the table of docs/machines: put there what trainer bench --table docs/machines prints:\n%s", table)
	}
}

func TestReadMachineRefuses(t *testing.T) {
	for name, text := range map[string]string{"no JSON": "{", "no machine": `{"step_ms": 3}`} {
		file := filepath.Join(t.TempDir(), "x.json")
		check.OK(t, os.WriteFile(file, []byte(text), 0o644))
		if _, err := ReadMachine(file); err == nil || !strings.Contains(err.Error(), "trainer bench --all --save") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadMachines(t.TempDir()); err == nil {
		t.Error("machines of an empty folder")
	}
	// What does not end is not read; of a device without an end this would take all memory.
	_, err := ReadMachine(os.DevNull)
	_, err2 := Read(os.DevNull)
	for _, err := range []error{err, err2} {
		check.Error(t, err, "is a device: give a file")
	}
}

// A folder may be called as a pattern of others.
func TestReadMachinesOfAnyFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "[of]")
	check.OK(t, os.CopyFS(dir, os.DirFS("../docs/machines")))
	if list, err := ReadMachines(dir); err != nil || len(list) == 0 {
		t.Errorf("%d machines, %v", len(list), err)
	}
}
