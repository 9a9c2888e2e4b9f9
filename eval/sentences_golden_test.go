package eval

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// sentencesGolden is testdata/sentences.json.
type sentencesGolden struct {
	STS struct {
		Cosines, Scores []float64
		Names           []string
		Ends            []int
		Parts           []Correlation
		All             Correlation
		Mean            Correlation
		Weighted        Correlation
	}
	Rules []struct {
		Near                 []int32
		Cosines              []float64
		Labels               []int32
		Fixed, Tuned, KMeans int
		Inertia              float64
	}
	Isotropy []struct {
		Isotropy
		X        []float32
		Pairs    [][2]int
		Spectrum []float64
	}
	Sentiment struct {
		Labels, Predicted                                   []float64
		Accuracy7, Accuracy2, F1, NonNegative, MAE, Pearson float64
		X                                                   []float32
		Penalty                                             float64
		Train                                               int
		Told                                                []float64
	}
}

// TestSentencesGolden compares with scipy, scikit-learn and numpy (tools/goldens/sentences.py).
func TestSentencesGolden(t *testing.T) {
	b := check.Get(os.ReadFile("testdata/sentences.json"))(t)
	var g sentencesGolden
	if err := json.Unmarshal(b, &g); err != nil || len(g.Rules) != 3 || len(g.Isotropy) != 2 {
		t.Fatal(err)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= 1e-9*max(1, math.Abs(want))) {
			t.Errorf("%s: %.12g, want %.12g", what, got, want)
		}
	}
	agree := func(what string, got, want Correlation) {
		t.Helper()
		near(what+" spearman", got.Spearman, want.Spearman)
		near(what+" pearson", got.Pearson, want.Pearson)
	}
	s := MeasureSTS(g.STS.Cosines, g.STS.Scores, g.STS.Names, g.STS.Ends)
	agree("all", s.All, g.STS.All)
	agree("mean", s.Mean, g.STS.Mean)
	agree("weighted", s.Weighted, g.STS.Weighted)
	for k, p := range s.Parts {
		agree(p.Name, p.Correlation, g.STS.Parts[k])
	}
	for _, r := range g.Rules {
		k := len(r.Near)
		right := func(t Thresholds) (n int) {
			for i, c := range r.Cosines {
				if r.Near[t.Place(c)] == r.Labels[i] {
					n++
				}
			}
			return n
		}
		if n := right(FixedThresholds(k)); n != r.Fixed {
			t.Errorf("fixed thresholds tell %d right, want %d", n, r.Fixed)
		}
		if n := right(TuneThresholds(r.Cosines, r.Labels, r.Near)); n != r.Tuned {
			t.Errorf("tuned thresholds tell %d right, want %d", n, r.Tuned)
		}
		cuts := ClusterThresholds(r.Cosines, k)
		clusters := make([]int, len(r.Cosines))
		sum, size := make([]float64, k), make([]float64, k)
		for i, c := range r.Cosines {
			clusters[i] = cuts.Place(c)
			sum[clusters[i]] += c
			size[clusters[i]]++
		}
		inertia := 0.0
		for i, c := range r.Cosines {
			m := c - sum[clusters[i]]/size[clusters[i]]
			inertia += m * m
		}
		near("inertia", inertia, r.Inertia)
		class, n := MatchClusters(clusters, r.Labels, k), 0
		for i, c := range clusters {
			if class[c] == r.Labels[i] {
				n++
			}
		}
		if n != r.KMeans {
			t.Errorf("clusters tell %d right, want %d", n, r.KMeans)
		}
	}
	for _, w := range g.Isotropy {
		got := check.Get(MeasureIsotropy(w.X, w.Rows, w.Width, w.Pairs))(t)
		near("mean cosine", got.Cosine, w.Cosine)
		near("effective rank", got.EffectiveRank, w.EffectiveRank)
		near("participation ratio", got.Participation, w.Participation)
		near("isoscore", got.IsoScore, w.IsoScore)
		near("uniformity", got.Uniformity, w.Uniformity)
		near("alignment", got.Alignment, w.Alignment)
		for i := range min(w.Rows-1, w.Width) {
			near("singular value", got.Spectrum[i], w.Spectrum[i])
		}
		if got.Positives != len(w.Pairs) || got.Rows != w.Rows {
			t.Errorf("%+v", got)
		}
	}
	w := g.Sentiment
	m := MeasureSentiment(w.Predicted, w.Labels)
	near("accuracy of seven", m.Accuracy7, w.Accuracy7)
	near("accuracy of two", m.Accuracy2, w.Accuracy2)
	near("F1", m.F1, w.F1)
	near("not negative", m.NonNegative, w.NonNegative)
	near("MAE", m.MAE, w.MAE)
	near("correlation", m.Pearson, w.Pearson)
	const d = 5
	layer := check.Get(FitLinear(w.X[:w.Train*d], d, w.Labels[:w.Train], w.Penalty))(t)
	for i, v := range layer.Predict(w.X[w.Train*d:]) {
		near("prediction", v, w.Told[i])
	}
}
