package weights

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// A model that stands below the names of a program that has trained it is read as if it stood alone, with a note; of two
// models none is.
func TestWrapped(t *testing.T) {
	plain := open1(t, golden("bert"))
	f := check.Get(OpenFile(golden("bert")))(t)
	defer f.Close()
	for _, c := range []struct {
		prefixes []string
		beside   string
		note     string // empty: the error
		err      string
	}{
		{[]string{"model."}, "criterion.weight", `the names of its tensors are taken without "model.", and 1 tensor without that left out`, ""},
		{[]string{"model.module.net."}, "", `the names of its tensors are taken without "model.module.net."`, ""},
		{[]string{"model.0.auto_model."}, "loss.scale", `the names of its tensors are taken without "model.0.auto_model.", and 1`, ""},
		{[]string{"net.", "model."}, "", "", `has a model below "model." and one below "net.": save one of them alone`},
		{[]string{"student_of_ours."}, "", "", "is of no family that is read"},
	} {
		var list []safetensors.Tensor
		for _, prefix := range c.prefixes {
			for _, name := range f.Names() {
				source, _ := f.Lookup(name)
				x := make([]float32, source.Len())
				if source.DType == "I64" {
					continue
				}
				check.OK(t, source.Read(x, 0))
				list = append(list, safetensors.Tensor{Name: prefix + name, Shape: source.Shape, Data: x})
			}
		}
		if c.beside != "" {
			list = append(list, safetensors.Tensor{Name: c.beside, Shape: []int{1}, Data: []float32{1}})
		}
		path := filepath.Join(t.TempDir(), "last.safetensors")
		check.OK(t, files.ReplaceFrom(path, func(w io.Writer) error { return safetensors.Write(w, list, nil) }))
		if c.err != "" {
			check.Fails(Open(path))(t, c.err)
			continue
		}
		m := open1(t, path)
		if !strings.Contains(strings.Join(m.Notes, "\n"), c.note) {
			t.Errorf("%v: notes %q", c.prefixes, m.Notes)
		}
		if !slices.Equal(m.Names(), plain.Names()) || len(m.Report().Unexpected) > 0 {
			t.Errorf("%v: %d parameters, want %d, %v", c.prefixes, len(m.Names()), len(plain.Names()), m.Report().Unexpected)
		}
		const name = "text/layers/01/ffn/output/weight"
		shape := plain.Shape(name)
		want, got := make([]float32, count(shape)), make([]float32, count(shape))
		check.OK(t, plain.Read(name, shape, want))
		check.OK(t, m.Read(name, shape, got))
		if !slices.Equal(got, want) {
			t.Errorf("%v: %s is another", c.prefixes, name)
		}
	}
}
