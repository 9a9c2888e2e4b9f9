package safetensors

import (
	"os"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// The bytes of a span, converted, are the tensor.
func TestSpanFloats(t *testing.T) {
	const path = "testdata/mixed.safetensors"
	f := check.Get(Open(path))(t)
	defer f.Close()
	whole := check.Get(os.ReadFile(path))(t)
	for _, name := range []string{"f64", "f32", "f16", "bf16"} {
		want := check.Get(f.Float32(name))(t)
		info, _ := f.Lookup(name)
		at, n, ok := f.Span(name)
		convert, err := Floats(info.DType)
		if !ok || err != nil || int(n) != len(want)*info.DType.Size() {
			t.Fatalf("%s: %d bytes, %v", name, n, err)
		}
		got := make([]float32, len(want))
		if convert(got, whole[at:at+n]); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if _, _, ok := f.Span("none"); ok {
		t.Error("a span of no tensor")
	}
	check.Fails(Floats(I64))(t, "I64")
}
