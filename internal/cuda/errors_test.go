package cuda_test

import (
	"bytes"
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/tensor"
)

// says fails the test unless an error has all of some words.
func says(t *testing.T, what string, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%s: got %v, want an error with %q", what, err, w)
		}
	}
}

func TestLaunchErrors(t *testing.T) {
	d := cudatest.Open(t)
	k := d.Kernel(&copies, "floats")
	one := cuda.Grid{Threads: 32}
	says(t, "a string", k.Launch(one, nil, nil, "1"), "kernel floats", "parameter 2", "cannot be a string")
	says(t, "a float64", k.Launch(one, 1.5, nil, 1), "parameter 0", "cannot be a float64")
	says(t, "a large number", k.Launch(one, nil, nil, 1<<31), "parameter 2", "2147483648 does not fit", "int64")
	says(t, "a large block", k.Launch(cuda.Grid{X: 3, Threads: 2048}, nil, nil, 0), "kernel floats with a grid of 3 x 1 x 1 blocks of 2048 x 1 threads", "cuLaunchKernel")
	says(t, "much shared memory", k.Launch(cuda.Grid{Threads: 32, Shared: d.Info().Shared + 1}, nil, nil, 0), "kernel floats with", "bytes of shared memory")
	says(t, "no such kernel", d.Kernel(&copies, "nothing").Launch(one), "kernel nothing of copies", "cuModuleGetFunction")
	if err := k.Launch(one, nil, nil, 0); err != nil { // no thread reads
		t.Errorf("after errors: %v", err)
	}
	if err := d.Sync(); err != nil {
		t.Error(err)
	}
}

func TestCompilerErrors(t *testing.T) {
	d := cudatest.Open(t)
	broken := cuda.Source{Name: "broken", Text: "extern \"C\" __global__ void broken(float *y) { y[0] = no_such_name; }"}
	for range 2 { // the second time without the compiler
		says(t, "broken source", d.Kernel(&broken, "broken").Launch(cuda.Grid{}, nil), "kernels of broken", "broken.cu", "no_such_name", "nvrtcCompileProgram")
	}
	macro := cuda.Source{Name: "macro", Text: "extern \"C\" __global__ void macro() { static_assert(N == 3); }"}
	if err := d.Kernel(&macro, "macro", cuda.Value("N", 3)).Launch(cuda.Grid{}); err != nil {
		t.Errorf("with N = 3: %v", err)
	}
	says(t, "with N = 4", d.Kernel(&macro, "macro", cuda.Value("N", 4)).Launch(cuda.Grid{}), "kernels of macro")
}

func TestOpenErrors(t *testing.T) {
	cudatest.Open(t)
	_, err := cuda.Open(cuda.Options{Index: 1000})
	says(t, "index 1000", err, "there is no device 1000", "CUDA_VISIBLE_DEVICES")
	_, err = cuda.Open(cuda.Options{Index: -1})
	says(t, "index -1", err, "there is no device -1")
}

// A damaged file of the cache is made anew, and where there can be no cache kernels run all the same.
func TestCacheOfKernels(t *testing.T) {
	cudatest.Open(t)
	folder := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", folder)
	run := func() {
		t.Helper()
		d, err := cuda.Open(cuda.Options{}) // a device knows what it has compiled
		if err != nil {
			t.Fatal(err)
		}
		m, err := d.Alloc(300)
		if err != nil {
			t.Fatal(err)
		}
		x := m.Buffer(0, exec.Spec{Shape: tensor.Shape{300}}).(*cuda.Buffer)
		fill(x.Host().F32, 1)
		if err := x.Store(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(there(t, d, "floats", x.Pointer(), 300), x.Host().F32) {
			t.Error("the kernel computes something else")
		}
		if err := errors.Join(m.Free(), d.Close()); err != nil {
			t.Error(err)
		}
	}
	run()
	files, _ := filepath.Glob(filepath.Join(folder, "geoalign/cuda/*"))
	if len(files) != 1 || filepath.Ext(files[0]) != ".cubin" {
		t.Fatalf("the cache has the files %v", files)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for name, content := range map[string][]byte{"whole": whole, "a bit flipped": flipped, "cut": whole[:len(whole)/2], "short": whole[:5], "empty": nil, "checksum alone": whole[:32]} {
		if err := os.WriteFile(files[0], content, 0o644); err != nil {
			t.Fatal(err)
		}
		run()
		now, err := os.ReadFile(files[0])
		if err != nil || len(now) < 100 || name == "whole" && !bytes.Equal(now, whole) || name != "whole" && bytes.Equal(now, content) {
			t.Errorf("%s: the file has %d bytes now (%v)", name, len(now), err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "geoalign/cuda/*")); len(left) != 1 {
		t.Errorf("the cache has the files %v", left)
	}
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", file)
	run()
}

// More memory than the device has is an error that says so, and the device goes on.
func TestOutOfMemory(t *testing.T) {
	d := cudatest.Open(t)
	before, _ := d.Allocated()
	none, err := d.Alloc(int(d.Info().Bytes/4) + 1)
	if none != nil {
		t.Errorf("there is memory beside the error: %v", none)
	}
	says(t, "more than all", err, "GiB more are needed on "+d.Info().Name, "are free", "train.batch_size")
	if after, _ := d.Allocated(); after != before {
		t.Errorf("%d bytes more are counted", after-before)
	}
	m, err := d.Alloc(1000)
	if err != nil {
		t.Fatalf("afterwards: %v", err)
	}
	if err := m.Free(); err != nil {
		t.Error(err)
	}
	if !cudatest.Emulated(d) {
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := osexec.Command(self, "-test.run=^TestSmallDevice$", "-test.v")
	c.Env = append(os.Environ(), "CUDAEMU_MEMORY=134217728", smallDevice+"=1")
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestSmallDevice") {
		t.Errorf("on a small device: %v\n%s", err, out)
	}
}

const smallDevice = "GEOALIGN_TEST_SMALL_DEVICE"

// A mirror whose shadow does not fit leaves nothing behind.
func TestSmallDevice(t *testing.T) {
	if os.Getenv(smallDevice) == "" {
		t.Skip("TestOutOfMemory runs it on a device of 128 MiB")
	}
	d := cudatest.Open(t)
	free, err := d.Free()
	if err != nil || free > 1<<27 {
		t.Fatalf("%d bytes are free (%v)", free, err)
	}
	before, _ := d.Allocated()
	host := make([]float32, free/4-1<<18)
	whole := []cuda.Span{{Lo: 0, Hi: len(host)}}
	_, err = d.Mirror(host, whole, true)
	says(t, "mirror with its shadow", err, "MiB more are needed", "of whose 128.00 MiB")
	if after, _ := d.Allocated(); after != before {
		t.Errorf("it leaves %d bytes", after-before)
	}
	if _, ok := d.Mirrored(host[:1]); ok {
		t.Error("it is found later")
	}
	m, err := d.Mirror(host, whole, false)
	if err != nil {
		t.Fatalf("without a shadow: %v", err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
