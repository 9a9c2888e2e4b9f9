package bench

import (
	"math"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/check"
)

// TestMeasureInference measures encoding by every system: each side that it has, each size of a batch, with and without states,
// and figures that fit together.
func TestMeasureInference(t *testing.T) {
	for name, sets := range systems {
		t.Run(name, func(t *testing.T) {
			cfg := check.Get(config.Load(tiny, sets))(t)
			told := 0
			r, err := MeasureInference(t.Context(), cfg, InferenceOptions{Batches: []int{1, 3}, Progress: func(string, int, int) { told++ }})
			if err != nil {
				t.Fatal(err)
			}
			sides, readings := 2, 2
			if cfg.Has(section.ImagesAlone) {
				sides = 1
			}
			if cfg.Has(section.Stored) {
				readings = 1
			}
			if len(r.Encodings) != sides*readings*2 || told < len(r.Encodings) || r.Parameters < 1 || !(r.Peak > 0) || r.Precision != "fp32" || r.Config != cfg.Run.Name {
				t.Fatalf("%d encodings, told %d times: %+v", len(r.Encodings), told, r)
			}
			for _, e := range r.Encodings {
				if e.Side != ImageSide && e.Side != TextSide || e.Batch != 1 && e.Batch != 3 || e.Rows%e.Batch != 0 || e.Passes < 1 || e.States && readings == 1 {
					t.Errorf("%+v", e)
				}
				if !(e.PerSecond > 0) || e.Best < e.PerSecond || !(e.MedianMS > 0) || e.P95MS < e.MedianMS || !(e.GFLOPRow > 0) || !(e.BufferMB > 0) {
					t.Errorf("%+v", e)
				}
				if got := e.GFLOPRow * e.PerSecond; !(math.Abs(got-e.GFLOPS) <= 1e-9*got) || !(math.Abs(e.GFLOPS/r.Peak-e.Share) <= 1e-9) {
					t.Errorf("%v GFLOP a row, %v a second and %v GFLOP/s, %v of %v", e.GFLOPRow, e.PerSecond, e.GFLOPS, e.Share, r.Peak)
				}
				var share float64
				for _, o := range e.Ops {
					share += o.Share
				}
				if !(math.Abs(share-1) <= 1e-6) || !slices.IsSortedFunc(e.Ops, func(a, b Time) int { return int(math.Copysign(1, b.MS-a.MS)) }) {
					t.Errorf("shares of ops sum to %v: %+v", share, e.Ops)
				}
			}
		})
	}
}

// TestFeaturesCostLess: a side whose last block computes nothing but what stands for a row has less to multiply.
func TestFeaturesCostLess(t *testing.T) {
	cfg := check.Get(config.Load(tiny, systems["clip"]))(t)
	r := check.Get(MeasureInference(t.Context(), cfg, InferenceOptions{Batches: []int{4}}))(t)
	for i := 0; i < len(r.Encodings); i += 2 {
		if x, y := r.Encodings[i], r.Encodings[i+1]; x.States || !y.States || x.GFLOPRow >= y.GFLOPRow {
			t.Errorf("%s: %v GFLOP for features, %v with states", x.Side, x.GFLOPRow, y.GFLOPRow)
		}
	}
}

// TestInferenceErrors: what cannot be measured says why.
func TestInferenceErrors(t *testing.T) {
	cfg := check.Get(config.Load(tiny, systems["moco"]))(t)
	_, err := MeasureInference(t.Context(), cfg, InferenceOptions{Batches: []int{1}, Sides: []string{TextSide}})
	check.Error(t, err, `no such side (got "texts"): choose images`)
}

// TestCaptionLength: captions are of every length from a fifth of the most to the most, about as often.
func TestCaptionLength(t *testing.T) {
	for _, most := range []int{1, 4, 25, 40, 77} {
		count := map[int]int{}
		for i := range captions {
			l := CaptionLength(i, most)
			if count[l]++; l < max(1, most/5) || l > most {
				t.Fatalf("caption %d of %d places has %d tokens", i, most, l)
			}
		}
		lengths := most - max(1, most/5) + 1
		for l, n := range count {
			if len(count) != lengths || n < captions/lengths || n > captions/lengths+1 {
				t.Fatalf("%d captions of %d tokens, and %d lengths of %d", n, l, len(count), lengths)
			}
		}
	}
}
