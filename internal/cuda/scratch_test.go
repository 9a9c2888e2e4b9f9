package cuda_test

import (
	"testing"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/exec"
)

var plusSource = cuda.Source{Name: "test plus", Text: `
extern "C" __global__ void plus(float *y, const float *a, const float *b, int n) {
  int at = blockIdx.x * 256 + threadIdx.x;
  if (at < n) y[at] = a[at] + b[at];
}`}

// TestScratch holds as much scratch memory as the largest step needs, whatever others were prepared before, and keeps what a
// recording knows for as long as that lives.
func TestScratch(t *testing.T) {
	cudatest.Open(t) // finds the libraries
	d, err := cuda.Open(cuda.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const n = 1000
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(i)
	}
	// step returns one that makes 3x by way of the end of scratch memory, and its result.
	step := func(bytes int64) (exec.Step, exec.Operand) {
		x, _ := onDevice(t, d, exec.Float32, values)
		out, _ := onDevice(t, d, exec.Float32, make([]float32, n))
		c := &exec.DeviceCall{In: []exec.Operand{x}, Out: out}
		p := cuda.Scratch(c, bytes) + cuda.Pointer(bytes-4*n)
		k := cuda.Load(c, &plusSource, "plus")
		g := cuda.Grid{X: cuda.Blocks(n, 256), Threads: 256}
		return func() error {
			if err := k.Launch(g, p, c.In[0], c.In[0], n); err != nil {
				return err
			}
			return k.Launch(g, c.Out, p, c.In[0], n)
		}, out
	}
	check := func(what string, run func() error, out exec.Operand) {
		t.Helper()
		inStep(t, &exec.DeviceCall{Out: out}, func() { cuda.Zero(out) })
		if err := run(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for i, v := range fetched(t, out) {
			if v != 3*float32(i) {
				t.Fatalf("%s: element %d is %v", what, i, v)
			}
		}
	}
	const kib = 1 << 10
	first, firstOut := step(64 * kib)
	second, secondOut := step(256 * kib)
	third, thirdOut := step(128 * kib)
	before, _ := d.Allocated()
	held := func(what string, want int64) {
		t.Helper()
		if now, _ := d.Allocated(); now-before != want {
			t.Errorf("%s: %d bytes of scratch memory are held, want %d", what, now-before, want)
		}
	}
	check("the first step", first, firstOut)
	check("the second step", second, secondOut)
	check("the third step", third, thirdOut)
	held("the largest of three steps", 256*kib)

	fourth, fourthOut := step(512 * kib)
	before, _ = d.Allocated() // with 256 KiB
	check("a larger step", fourth, fourthOut)
	held("grown", 256*kib)
	r, err := d.Record(first)
	if err != nil {
		t.Fatal(err)
	}
	check("a recording", r.Launch, firstOut)
	fifth, fifthOut := step(1024 * kib)
	before, _ = d.Allocated() // with 512 KiB
	later, err := d.Record(fifth)
	if err != nil {
		t.Fatal(err)
	}
	check("a recording of a larger step", later.Launch, fifthOut)
	held("beside what a recording knows", 1024*kib)
	check("the earlier recording", r.Launch, firstOut)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	held("after the recording", 512*kib)
	if err := later.Close(); err != nil {
		t.Fatal(err)
	}
	held("without recordings", 512*kib)
	check("the second step at last", second, secondOut)
}
