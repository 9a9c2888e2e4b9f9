package export_test

import (
	"cmp"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/export"
	"github.com/geoalign/geoalign/export/exporttest"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/weights"
)

// Parameters of every form are written in half of the bytes and read back as the nearest number; config.json says which type it is.
func TestDType(t *testing.T) {
	for _, c := range []struct {
		dtype, torch string
		file         safetensors.DType
		error        float64 // of a number, by its size
	}{{"", "float32", safetensors.F32, 0}, {"fp32", "float32", safetensors.F32, 0},
		{"fp16", "float16", safetensors.F16, 1. / 2048}, {"bf16", "bfloat16", safetensors.BF16, 1. / 256}} {
		for _, o := range []export.Options{{To: export.HF}, {To: export.OpenCLIP}, {To: export.Timm}, {To: export.HF, Side: "text"}} {
			o.DType = c.dtype
			x := exporttest.New(t, exporttest.Find(t, "clip"))
			w := written(t, x, o)
			name := "model.safetensors"
			if o.To == export.OpenCLIP {
				name = "open_clip_" + name
			}
			f := check.Get(safetensors.Open(filepath.Join(w.Path, name)))(t)
			for _, info := range f.Tensors() {
				if info.DType != c.file {
					t.Errorf("%s to %s: %s is %s", c.dtype, o.To, info.Name, info.DType)
				}
			}
			check.OK(t, f.Close())
			if w.DType != cmp.Or(c.dtype, "fp32") {
				t.Errorf("%q: written as %q", c.dtype, w.DType)
			}
			if o.To == export.HF {
				var config struct {
					DType string `json:"dtype"`
					Old   string `json:"torch_dtype"`
				}
				text := check.Get(os.ReadFile(filepath.Join(w.Path, "config.json")))(t)
				check.OK(t, json.Unmarshal(text, &config))
				if config.DType != c.torch || config.Old != c.torch {
					t.Errorf("%s: config.json says %+v", c.dtype, config)
				}
			}
			m := check.Get(weights.Open(w.Path))(t)
			compared := 0
			for _, p := range x.Params {
				if !m.Has(p.Name) || p.Name == "temperature" {
					continue
				}
				want, got := numbers(t, p), make([]float32, len(numbers(t, p)))
				check.OK(t, m.Read(p.Name, p.Shape, got))
				for i, v := range want {
					if d := math.Abs(float64(got[i] - v)); !(d <= c.error*math.Abs(float64(v))+1e-7*c.error) {
						t.Fatalf("%s to %s: %s: %g became %g", c.dtype, o.To, p.Name, v, got[i])
					}
					compared++
				}
			}
			check.OK(t, m.Close())
			if compared == 0 {
				t.Error("nothing was compared")
			}
		}
	}
}

// What a type cannot hold is refused, and leaves no folder.
func TestDTypeRefused(t *testing.T) {
	for _, c := range []struct {
		to, dtype, want string
	}{
		{export.HF, "fp16", `tensor "vision_model.embeddings.class_embedding": number 0 is 70000, and F16 ends at 65504: use BF16 or F32`},
		{export.ONNX, "bf16", `--dtype = "bf16" cannot be told to onnx: its graphs are written in fp32: use --dtype fp32 or --to hf`},
		{export.HF, "int8", `numbers have no type "int8": use fp32, fp16, bf16`},
	} {
		x := exporttest.New(t, exporttest.Find(t, "clip"))
		i := slices.IndexFunc(x.Params, func(p weights.Param) bool { return p.Name == "image/cls_token" })
		inner := x.Params[i].Read
		x.Params[i].Read = func(dst []float32) error {
			err := inner(dst)
			dst[0] = 7e4
			return err
		}
		out := filepath.Join(t.TempDir(), "out")
		check.Fails(export.Write(x.Model, export.Options{To: c.to, DType: c.dtype, Out: out}))(t, c.want)
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: a folder is left", c.dtype)
		}
	}
}
