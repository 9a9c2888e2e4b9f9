package utterances

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// save writes arrays of float32 to a file of safetensors.
func save(t testing.TB, arrays map[string][]int, values map[string][]float32) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "part.safetensors")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var list []safetensors.Tensor
	for _, name := range slices.Sorted(keys(arrays)) {
		list = append(list, safetensors.Tensor{Name: name, Shape: arrays[name], Data: values[name]})
	}
	if err := safetensors.Write(f, list, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func keys(m map[string][]int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// TestLoad: sequences are pooled over their steps, those of zeros before and behind left out, whatever their length.
func TestLoad(t *testing.T) {
	inf := float32(math.Inf(-1))
	path := save(t, map[string][]int{"labels": {2, 1, 1}, "text": {2, 2, 2}, "audio": {2, 3, 1}, "vision": {2, 2}}, map[string][]float32{
		"labels": {-3, 1.5},
		"text":   {0, 0, 4, 6, 1, 2, 3, 4}, // padding before
		"audio":  {inf, 2, 4, 0, 0, 0},
		"vision": {1, 2, 3, 4},
	})
	s, err := Load(path, Modalities)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Labels, []float64{-3, 1.5}) || !slices.Equal(s.Pooled["text"], []float32{4, 6, 2, 3}) || !slices.Equal(s.Pooled["audio"], []float32{3, 0}) || !slices.Equal(s.Pooled["vision"], []float32{1, 2, 3, 4}) {
		t.Errorf("%+v", s)
	}
	if s.NotFinite != 1 || s.Empty["audio"] != 1 || s.Empty["text"] != 0 || s.Width["text"] != 2 || s.Width["audio"] != 1 {
		t.Errorf("%+v", s)
	}
	if s, err = Load(path, []string{"vision"}); err != nil || len(s.Pooled) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestStepsOfZeros: a step of zeros between others is one of the sequence, such as silence, and so is one of nothing finite.
func TestStepsOfZeros(t *testing.T) {
	nan := float32(math.NaN())
	path := save(t, map[string][]int{"labels": {3, 1}, "audio": {3, 6, 2}}, map[string][]float32{
		"labels": {1, 2, 3},
		"audio": {
			0, 0, 3, 6, 0, 0, 0, 0, 5, 0, 0, 0, // four steps
			8, 2, 0, 0, nan, nan, 0, 4, 0, 0, 0, 0, // four steps
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 9, // one step
		},
	})
	s, err := Load(path, []string{"audio"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []float32{2, 1.5, 2, 1.5, 7, 9}; !slices.Equal(s.Pooled["audio"], want) || s.NotFinite != 2 || s.Empty["audio"] != 0 {
		t.Errorf("%+v, want the means %v", s, want)
	}
}

// TestLoadErrors: a file that is not of the layout is named with the array.
func TestLoadErrors(t *testing.T) {
	for _, c := range []struct {
		shape  []int
		labels []float32
		modal  string
		want   string
	}{
		{[]int{2, 1}, []float32{1, 3.5}, "audio", `array "labels": row 1 has [3.5]: want one number from -3 to 3`},
		{[]int{2, 1}, []float32{1, float32(math.NaN())}, "audio", "row 1 has [NaN]"},
		{[]int{1, 2}, []float32{1, 2}, "audio", "row 0 has 2 numbers"},
		{[]int{3, 1}, []float32{1, 2, 3}, "audio", `array "audio": has 2 utterances and "labels" 3`},
		{[]int{2, 1}, []float32{1, 2}, "vision", "vision"},
		{[]int{2, 1}, []float32{1, 2}, "smell", `there is no modality "smell"`},
	} {
		path := save(t, map[string][]int{"labels": c.shape, "audio": {2, 1, 1}}, map[string][]float32{"labels": c.labels, "audio": {1, 2}})
		if _, err := Load(path, []string{c.modal}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if _, err := Load("/nowhere/x.npz", nil); err == nil || !strings.Contains(err.Error(), "/nowhere/x.npz") {
		t.Error(err)
	}
}

// FuzzLoad: files of any bytes are utterances of one number, or an error.
func FuzzLoad(f *testing.F) {
	path := save(f, map[string][]int{"labels": {2, 1}, "audio": {2, 1, 1}}, map[string][]float32{"labels": {1, 2}, "audio": {1, 2}})
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, true)
	f.Add([]byte("PK\x03\x04"), false)
	f.Fuzz(func(t *testing.T, b []byte, tensors bool) {
		defer budgettest.Within(t, len(b))()
		path := filepath.Join(t.TempDir(), map[bool]string{true: "x.safetensors", false: "x.npz"}[tensors])
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Skip()
		}
		s, err := Load(path, []string{"audio"})
		if err == nil && len(s.Pooled["audio"]) != len(s.Labels)*s.Width["audio"] {
			t.Errorf("%+v", s)
		}
	})
}

// TestLoadEmotions: labels of seven numbers are the sentiment and six emotions.
func TestLoadEmotions(t *testing.T) {
	shapes := map[string][]int{"labels": {2, 7}, "vision": {2, 1}}
	labels := []float32{-1, 0, 1, 0, 2.5, 0, 0, 3, 3, 0, 0, 0, 0, 0.5}
	s, err := Load(save(t, shapes, map[string][]float32{"labels": labels, "vision": {1, 2}}), []string{"vision"})
	if err != nil || !slices.Equal(s.Labels, []float64{-1, 3}) || !slices.Equal(s.Emotions[0], []float64{0, 3}) ||
		!slices.Equal(s.Emotions[3], []float64{2.5, 0}) || !slices.Equal(s.Emotions[5], []float64{0, 0.5}) {
		t.Errorf("%+v, %v", s, err)
	}
	labels[8] = -0.5
	_, err = Load(save(t, shapes, map[string][]float32{"labels": labels, "vision": {1, 2}}), nil)
	if err == nil || !strings.Contains(err.Error(), "row 1 has -0.5 for happiness: want a strength from 0 to 3") {
		t.Error(err)
	}
	shapes["labels"] = []int{7, 2}
	_, err = Load(save(t, shapes, map[string][]float32{"labels": labels, "vision": {1, 2}}), nil)
	if err == nil || !strings.Contains(err.Error(), "has 2 numbers: want the sentiment, or it and 6 emotions") {
		t.Error(err)
	}
}
