package align

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

type array struct {
	Shape []int     `json:"shape"`
	Data  []float64 `json:"data"`
}

func (a array) table() Table {
	return Table{narrow(a.Data), a.Shape[1]}
}

func narrow(x []float64) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(v)
	}
	return out
}

// goldens are the values of tools/goldens/align.py.
func goldens(t *testing.T) map[string]map[string]array {
	b := check.Get(os.ReadFile("testdata/align.json"))(t)
	var out map[string]map[string]array
	check.OK(t, json.Unmarshal(b, &out))
	return out
}

// TestGolden compares scores of queries with numpy, scipy and scikit-learn.
func TestGolden(t *testing.T) {
	e := engine(t)
	raw := Prepare{KeepMean: true, KeepLength: true}
	methods := map[string]Method{
		"ridge text to image":      Ridge{Direction: TextToImage, Lambda: .5},
		"ridge image to text":      Ridge{Direction: ImageToText, Lambda: .5},
		"ridge both ways":          Ridge{Lambda: .5},
		"ridge absolute, as it is": Ridge{Prepare: raw, Direction: TextToImage, Lambda: 2, Absolute: true},
		"ridge without penalty":    Ridge{Direction: TextToImage, Lambda: 1e-12},
		"leave-one-out":            Ridge{Prepare: Prepare{KeepLength: true}, Direction: TextToImage},
		"procrustes":               Procrustes{},
		"cca unweighted":           CCA{Lambda: .5, Unweighted: true},
		"cca":                      CCA{Lambda: .5},
		"cca squared":              CCA{Lambda: .5, Power: 2},
		"csa":                      CSA{Lambda: .5, Components: 3},
		"asif":                     ASIF{K: 4, P: 3, Chunk: 7},
	}
	compared := map[string]bool{}
	for name, c := range goldens(t) {
		if _, ok := c["images"]; !ok {
			continue
		}
		p := Pairs{c["images"].table(), c["texts"].table()}
		for what, method := range methods {
			want, ok := c[what]
			if !ok {
				continue
			}
			compared[what] = true
			m, err := method.Fit(e, p)
			if err != nil {
				t.Fatalf("%s: %s: %v", name, what, err)
			}
			near(t, name+": "+what, scores(t, e, m, narrow(c["image queries"].Data), narrow(c["text queries"].Data)),
				want.Data, 2e-5)
		}
		m := check.Get(CSA{Lambda: .5}.Fit(e, p))(t)
		near(t, name+": correlations", widen(m.(*CSAMap).Correlations()), c["correlations"].Data, 1e-5)
	}
	for what := range methods {
		if !compared[what] {
			t.Errorf("no golden for %q", what)
		}
	}
}

func TestForecastGolden(t *testing.T) {
	e := engine(t)
	for name, c := range goldens(t) {
		if _, ok := c["images"]; !ok {
			continue
		}
		f, err := Forecast(e, Pairs{c["images"].table(), c["texts"].table()}, ForecastOptions{K: 3, Permutations: 5})
		if err != nil {
			t.Fatal(err)
		}
		for what, got := range map[string]float64{"mutual": f.Mutual.Value, "cka": f.CKA.Value,
			"agreement": f.Agreement.Value} {
			near(t, name+": "+what, []float64{got}, c[what].Data, 1e-5)
		}
	}
}

func TestPlanGolden(t *testing.T) {
	e := engine(t)
	for name, c := range goldens(t) {
		s, ok := c["similarities"]
		if !ok {
			continue
		}
		p := check.Get(NewPlan(e, s.Data, s.Shape[0], s.Shape[1],
			PlanOptions{Epsilon: c["epsilon"].Data[0], Iterations: 20000, Tolerance: 1e-12}))(t)
		near(t, name, masses(p), c["plan"].Data, 1e-9)
	}
}
