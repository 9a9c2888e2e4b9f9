package align

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/state"
)

// TestState restores maps by what a checkpoint keeps of them.
func TestState(t *testing.T) {
	e := engine(t)
	p := Pairs{gauss(1, 30, 5), gauss(2, 30, 4)}
	rows, texts := gauss(3, 3, 5).Data, gauss(4, 3, 4).Data
	for _, c := range []struct {
		method Method
		empty  Map
	}{{Ridge{}, &Linear{}}, {CCA{}, &Linear{}}, {CSA{}, &CSAMap{}}, {ASIF{K: 7}, &ASIFMap{}}} {
		m := check.Get(c.method.Fit(e, p))(t)
		b := check.Get(json.Marshal(m.Counters()))(t)
		check.OK(t, json.Unmarshal(b, c.empty.Counters()))
		check.OK(t, c.empty.(state.Checker).CheckCounters())
		saved, into := m.Tensors(), c.empty.Tensors()
		for i, x := range into {
			if x.Name != saved[i].Name || !reflect.DeepEqual(x.Shape, saved[i].Shape) {
				t.Fatalf("%T: tensor %s %v, want %s %v", m, x.Name, x.Shape, saved[i].Name, saved[i].Shape)
			}
			n := 1
			for _, d := range x.Shape {
				n *= d
			}
			if got := copy(x.Data.([]float32), saved[i].Data.([]float32)); got != n {
				t.Fatalf("%T: tensor %s has %d numbers, want %d", m, x.Name, got, n)
			}
		}
		if m.StateName() != "alignment" || m.StateVersion() != 1 {
			t.Fatalf("%T is saved as %s, version %d", m, m.StateName(), m.StateVersion())
		}
		near(t, "restored", scores(t, e, c.empty, rows, texts), scores(t, e, m, rows, texts), 0)
	}
}

// TestStateErrors refuses counters that no fit writes.
func TestStateErrors(t *testing.T) {
	for _, c := range []struct {
		m        Map
		counters string
		words    []string
	}{
		{&Linear{}, `{}`, []string{"rows of width [0 0]"}},
		{&Linear{}, `{"widths":[3,2],"parts":[-1],"weights":[1]}`, []string{"a part of -1 channels"}},
		{&Linear{}, `{"widths":[3,2],"parts":[2,2],"weights":[1]}`, []string{"1 weights", "a weight for each part"}},
		{&Linear{}, `{"widths":[3,2000000],"parts":[2],"weights":[1]}`, []string{"2000000"}},
		{&CSAMap{}, `{"widths":[3,2],"parts":[2,2],"weights":[1,1]}`, []string{"one part (got 2)"}},
		{&ASIFMap{}, `{"widths":[3,2],"anchors":4,"k":5,"p":8}`, []string{"K = 5 of 4 anchors"}},
		{&ASIFMap{}, `{"widths":[3,0],"anchors":4,"k":4,"p":8}`, []string{"rows of width [3 0]"}},
	} {
		check.OK(t, json.Unmarshal([]byte(c.counters), c.m.Counters()))
		wantError(t, c.m.(state.Checker).CheckCounters(), c.words...)
	}
}

// TestStateOfNothing: a map that is not fitted, or whose counters fit nothing, has no tensors.
func TestStateOfNothing(t *testing.T) {
	for text, maps := range map[string][]Map{
		`{}`: {&Linear{}, &CSAMap{}, &ASIFMap{}},
		`{"widths": [-1, 2], "parts": [3], "weights": [1]}`:              {&Linear{}, &CSAMap{}},
		`{"widths": [1000000, 2], "parts": [1000000], "weights": [1]}`:   {&Linear{}, &CSAMap{}},
		`{"widths": [1000000, 2], "anchors": 100000000, "k": 1, "p": 1}`: {&ASIFMap{}},
		`{"widths": [1, 2], "anchors": -5, "k": 1, "p": 1}`:              {&ASIFMap{}},
	} {
		for _, m := range maps {
			check.OK(t, json.Unmarshal([]byte(text), m.Counters()))
			if m.(state.Checker).CheckCounters() == nil {
				t.Errorf("%T accepts %s", m, text)
			}
			for _, x := range m.Tensors() {
				if n := len(x.Data.([]float32)); n > 0 {
					t.Errorf("%T makes %d numbers of %s for %s", m, n, x.Name, text)
				}
			}
		}
	}
}
