package tasks_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/space"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/zeroshot"
)

// zeroShotOf is a classification of n images by texts prompts of classes with features in a space, some
// images being of no class.
func zeroShotOf(seed uint64, n, texts int, classes []string, score scoring.Score) zeroshot.ZeroShot {
	r := rand.New(rand.NewPCG(seed, 4))
	m := &fakeModel{}
	features := func(n int) (list [][]float32) {
		for range n {
			row := make([]float32, fakeDim)
			for i := range row {
				row[i] = float32(r.NormFloat64())
			}
			for i := 0; i < fakeDim && !score.Space.Euclid; i += score.Space.SphereDim() {
				scoring.Normalize(row[i:][:score.Space.SphereDim()])
			}
			list = append(list, row)
		}
		return list
	}
	m.images, m.texts = features(n), features(texts)
	z := zeroshot.ZeroShot{Image: fakeImages{fakeSide{m}}, Text: fakeTexts{fakeSide{m}}, Score: score, Images: imageRows{fakeSet{n: n}}, Prompts: textRows{fakeSet{owner: make([]int, texts)}},
		Classes: classes, Engine: engine, Encoding: tasks.Encoding{BatchSize: 4, Workers: 2}}
	for i := range n {
		z.ImageClass = append(z.ImageClass, int32(i%(len(classes)+1))-1) // every fourth of three classes is of none
	}
	for i := range texts {
		z.PromptClass = append(z.PromptClass, int32(r.IntN(len(classes))))
		if i < len(classes) {
			z.PromptClass[i] = int32(i)
		}
	}
	return z
}

// naiveZeroShot classifies by the definitions, in float64.
func naiveZeroShot(z zeroshot.ZeroShot, score func(x, y []float64) float64) (top1, top2 float64, confused []int32) {
	m := z.Image.(fakeImages).fakeModel
	wide := func(x []float32) (y []float64) {
		for _, v := range x {
			y = append(y, float64(v))
		}
		return y
	}
	k := len(z.Classes)
	confused = make([]int32, k*k)
	n := 0
	for i, own := range z.ImageClass {
		if own == data.UnknownLabel {
			continue
		}
		n++
		scores := make([]float64, k)
		for c := range scores {
			count := 0.
			mean := make([]float64, fakeDim)
			for j, of := range z.PromptClass {
				if int(of) != c {
					continue
				}
				count++
				scores[c] += score(wide(m.images[i]), wide(m.texts[j]))
				for d, v := range m.texts[j] {
					mean[d] += float64(v)
				}
			}
			scores[c] /= count
			if z.AverageScores {
				continue
			}
			width := z.Score.Space.SphereDim()
			for d := 0; d < fakeDim; d += width {
				var sq float64
				for _, v := range mean[d:][:width] {
					sq += v * v
				}
				for e := range width {
					mean[d+e] /= math.Sqrt(sq)
				}
			}
			scores[c] = score(wide(m.images[i]), mean)
		}
		best, before := 0, 0
		for c, s := range scores {
			if s > scores[best] {
				best = c
			}
			if s > scores[own] {
				before++
			}
		}
		confused[int(own)*k+best]++
		if best == int(own) {
			top1++
		}
		if before < 5 {
			top2++
		}
	}
	return 100 * top1 / float64(n), 100 * top2 / float64(n), confused
}

// TestZeroShotNaive: both averages over prompts in three spaces and scores, against plain loops.
func TestZeroShotNaive(t *testing.T) {
	metric := &scoring.Metric{Form: "diag", Weight: []float32{2, .5, -1, 1}}
	angle := func(width int) func(x, y []float64) float64 {
		return func(x, y []float64) float64 {
			var sum float64
			for i := 0; i < len(x); i += width {
				var dot float64
				for k := i; k < i+width; k++ {
					dot += x[k] * y[k]
				}
				sum += math.Pow(math.Acos(max(-1, min(1, dot))), 2)
			}
			return -math.Sqrt(sum)
		}
	}
	product := func(w ...float64) func(x, y []float64) float64 {
		return func(x, y []float64) (s float64) {
			for i := range x {
				s += w[i] * x[i] * y[i]
			}
			return s
		}
	}
	seen := map[float64]bool{}
	for name, c := range map[string]struct {
		score scoring.Score
		naive func(x, y []float64) float64
	}{
		"sphere, cosine": {scoring.Score{Space: space.Space{Dim: fakeDim}, Terms: []scoring.Term{{Kind: scoring.Cosine, Weight: 1}}}, product(1, 1, 1, 1)},
		"oblique, angle": {scoring.Score{Space: space.Space{Dim: fakeDim, Spheres: 2}, Terms: []scoring.Term{{Kind: scoring.Angle, Weight: 1}}}, angle(2)},
		"sphere, gssf":   {scoring.Score{Space: space.Space{Dim: fakeDim}, Terms: []scoring.Term{{Kind: scoring.GSSF, Weight: 1, Metric: metric}}}, product(2, .5, -1, 1)},
	} {
		for _, byScores := range []bool{false, true} {
			z := zeroShotOf(3, 83, 31, strings.Split("a b c d e f g h", " "), c.score)
			z.AverageScores = byScores
			top1, top5, confused := naiveZeroShot(z, c.naive)
			s, err := z.Run(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if !(math.Abs(s.Top1-top1) <= 1e-9) || !(math.Abs(s.Top5-top5) <= 1e-9) || s.Images != 73 ||
				s.Unlabelled != 10 || s.Prompts != 31 || s.Chance1 != 12.5 || s.Chance5 != 62.5 {
				t.Errorf("%s, scores %v: %+v, want %v and %v", name, byScores, s, top1, top5)
			}
			for i, n := range s.PerClass.Confused {
				if n != confused[i] {
					t.Fatalf("%s, scores %v: confused %v, want %v", name, byScores, s.PerClass.Confused, confused)
				}
			}
			seen[s.Top1] = true
		}
	}
	if len(seen) < 4 {
		t.Errorf("the cases do not tell each other apart: %v", seen)
	}
}

// TestZeroShotEmptyClass: a class without images is a wrong answer for others and counts in no mean.
func TestZeroShotEmptyClass(t *testing.T) {
	cosine := scoring.Score{Space: space.Space{Dim: fakeDim}, Terms: []scoring.Term{{Kind: scoring.Cosine, Weight: 1}}}
	z := zeroShotOf(5, 20, 6, []string{"a", "b", "nothing"}, cosine)
	for i := range z.ImageClass {
		z.ImageClass[i] = int32(i % 2)
	}
	s := check.Get(z.Run(t.Context()))(t)
	right := s.PerClass.Right
	if want := 100 * (float64(right[0])/10 + float64(right[1])/10) / 2; !(math.Abs(s.MeanOfClasses1-want) <= 1e-9) ||
		s.PerClass.Empty() != 1 || len(s.PerClass.Classes()) != 2 {
		t.Errorf("%+v", s)
	}
	if table := s.Table(); !strings.Contains(table, "1 of 3 classes have no image.") {
		t.Errorf("%s", table)
	}
	z.Image.(fakeImages).images[7][1] = float32(math.NaN())
	if _, err := z.Run(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "image 7 of those with a class: a score is NaN") {
		t.Errorf("%v", err)
	}
	for i := range z.ImageClass {
		z.ImageClass[i] = data.UnknownLabel
	}
	check.Fails(z.Run(t.Context()))(t, "none of 20 images has a class")
	z.ImageClass[0], z.PromptClass = 0, []int32{0, 0, 0, 1, 1, 1}
	for _, z.AverageScores = range []bool{false, true} {
		check.Fails(z.Run(t.Context()))(t, `class "nothing" has no prompt`)
	}
}
