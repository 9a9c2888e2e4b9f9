package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// golden is what a published program computed of parameters and data that this one makes up: parity.py --golden.
type golden struct {
	Config    string                        `json:"config"`
	Sets      []string                      `json:"sets"`
	Flags     []string                      `json:"flags"`
	Losses    map[string]float64            `json:"losses"`
	Recalls   map[string]string             `json:"recalls"`
	Scores    map[string]map[string]float64 `json:"scores"`    // by tensor and place
	Gradients map[string][2]float64         `json:"gradients"` // product with the cosines of 1, 2, 3 and so on, length
}

// Bounds are those of the suite.
const (
	scoresBound, lossBound = 1e-5, 1e-5
	gradientBound          = 2e-4 // of the length of a gradient
)

// TestGoldens: what is computed here is what the published programs computed, without them.
func TestGoldens(t *testing.T) {
	files := check.Get(filepath.Glob(filepath.Join("testdata", "*.json")))(t)
	if len(files) < 3 {
		t.Fatalf("%d goldens", len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			var g golden
			check.OK(t, json.Unmarshal(check.Get(os.ReadFile(file))(t), &g))
			numbers := map[string]int{"-images": 40}
			for i := 0; i+1 < len(g.Flags); i += 2 {
				numbers[g.Flags[i]] = check.Get(strconv.Atoi(g.Flags[i+1]))(t)
			}
			out := filepath.Join(t.TempDir(), "ours.safetensors")
			check.OK(t, run(g.Config, out, numbers["-rows"], numbers["-images"], numbers["-rerank"], g.Sets))
			f := check.Get(safetensors.Open(out))(t)
			defer f.Close()
			g.compare(t, f)
		})
	}
}

// compare tells what of a file differs.
func (g golden) compare(t *testing.T, f *safetensors.File) {
	values := func(name string) []float32 { return check.Get(f.Float32(name))(t) }
	for name, want := range g.Losses {
		if got := float64(values(name)[0]); !(math.Abs(got-want) <= lossBound*math.Abs(want)) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for name, places := range g.Scores {
		x := values(name)
		for place, want := range places {
			if got := float64(x[check.Get(strconv.Atoi(place))(t)]); !(math.Abs(got-want) <= scoresBound*max(1, math.Abs(want))) {
				t.Errorf("%s %s is %v, want %v", name, place, got, want)
			}
		}
	}
	for name, want := range g.Gradients {
		product := 0.
		for i, v := range values("grad/" + name) {
			product += float64(v) * math.Cos(float64(i+1))
		}
		if !(math.Abs(product-want[0]) <= gradientBound*want[1]) {
			t.Errorf("gradient of %s gives %v, want %v", name, product, want[0])
		}
	}
	found := strings.Fields(f.Metadata()["recalls"])
	for name, want := range g.Recalls {
		if !slices.Contains(found, name+"="+want) {
			t.Errorf("%s is not %s in %s", name, want, found)
		}
	}
}
