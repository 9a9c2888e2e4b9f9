package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/interact"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
)

// scoreTeachers are frozen teachers of tiny models, whose widths and scores are their own.
func scoreTeachers() map[string]config.Config {
	gssf := tinyCLIP("sphere")
	gssf.Model.Image.Width, gssf.Model.Text.Layers, gssf.Model.Head.Dim = 24, 1, 16
	gssf.Objective.ITC.Score = "gssf"
	tokens := tinyCLIP("sphere")
	tokens.Model.System, tokens.Model.Interaction = "matching", interact.Options{Kind: "scan", Metric: "similarity"}
	tokens.Objective.ITC.InBatchWeight, tokens.Objective.Hinge = 0, objectives.Hinge{Weighted: section.Weigh(1), Margin: 0.2, Negatives: "all"}
	distance := tinyCLIP("euclid")
	return map[string]config.Config{"gssf": gssf, "tokens": tokens, "distance": distance}
}

// taughtConfig is a student.
func taughtConfig(metric string) config.Config {
	cfg := tinyCLIP("sphere")
	cfg.Objective.DistillScores = objectives.DistillScores{Teacher: "runs/teacher", Weight: 2, Temperature: 0.5, Metric: metric}
	return cfg
}

// divergence is the definition of the loss for scores (n, n), rows and columns.
func divergence(student, teacher []float32, n int, temperature float64) (sum float64) {
	soft := func(x []float32, i int, byColumn bool) []float64 {
		p, total := make([]float64, n), 0.
		for j := range p {
			v := x[i*n+j]
			if byColumn {
				v = x[j*n+i]
			}
			p[j] = math.Exp(float64(v) / temperature)
			total += p[j]
		}
		for j := range p {
			p[j] /= total
		}
		return p
	}
	for _, byColumn := range []bool{false, true} {
		for i := range n {
			s, t := soft(student, i, byColumn), soft(teacher, i, byColumn)
			for j, p := range t {
				sum += p * math.Log(p/s[j]) / float64(n)
			}
		}
	}
	return sum
}

// TestTeacher: a student is taught by the scores that the teacher gives its batch in evaluation, whatever the teacher
// compares, and the teacher's weights are read once and stay.
func TestTeacher(t *testing.T) {
	for name, cfg := range scoreTeachers() {
		teacher := build(t, cfg, "builtin", 1)
		frozen, source := opened(t, teacher)
		own := taughtConfig("")
		m, err := New(own, Options{Engine: newEngine(t), Vocab: tinyVocab, Teacher: frozen})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		read := len(source.read)
		b := randomPairs(m, 3)
		got, err := m.Forward(b, Control{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(source.read) != read || read == 0 {
			t.Errorf("%s: a step read %v of the teacher", name, source.read[read:])
		}
		scores := func(x *Model) []float32 {
			n := x.cfg.Train.BatchSize
			s := make([]float32, n*n)
			u := &scoreTeacher{m: x, rows: n}
			check.OK(t, u.Scores(m.feed(b, Control{}).Batch, s))
			return s
		}
		want := divergence(scores(m.Model), scores(teacher.Model), 5, 0.5)
		i := slices.IndexFunc(got.Parts, func(p Part) bool { return p.Name == "distill_scores" })
		if i < 0 || !(math.Abs(got.Parts[i].Value-want) <= 1e-5*math.Max(want, 0.01)) {
			t.Errorf("%s: %v, want %v", name, got.Parts, want)
		}
		for _, q := range m.params.List() {
			if strings.HasPrefix(q.Name, "teacher") {
				t.Errorf("%s: the student has %s", name, q.Name)
			}
		}
	}
}

// TestTeacherMetric: the metric of a teacher's features, or of the tokens that it compares, starts as the identity, is
// trained by its own part, as finite differences say, and is no part of the student.
func TestTeacherMetric(t *testing.T) {
	teachers := scoreTeachers()
	for kind, steps := range map[string]int{"bfan": 0, "imram": 2, "naaf": 0, "sgr": 2, "saf": 0, "max_soft": 0} {
		cfg := teachers["tokens"]
		cfg.Model.Interaction = interact.Options{Kind: kind, Steps: steps, SimDim: 4, Penalty: 2}
		teachers[kind] = cfg
	}
	delete(teachers, "distance")
	for name, of := range teachers {
		teacher := build(t, of, "builtin", 1)
		dim, losses := teacher.Dim(), []float64(nil)
		for metric, weights := range map[string]int{"": 0, "diag": dim, "block_diag": dim * min(dim, 16), "dense": dim * dim} {
			frozen, _ := opened(t, teacher)
			m := newTrainer(t, taughtConfig(metric), Options{Engine: newEngine(t), Vocab: tinyVocab, Teacher: frozen})
			got := forward(t, m, randomPairs(m, 3), Control{})
			losses = append(losses, got.Parts[part(got, "distill_scores")].Value)
			q, ok := m.params.Get("teacher/gssf/weight")
			if ok != (weights > 0) || ok && (q.Len() != weights || !m.Learnable(q.Name)) {
				t.Errorf("%s, %q: parameter %+v", name, metric, q)
			}
			if i := part(got, "distill_scores_teacher"); (i >= 0) != (weights > 0) {
				t.Errorf("%s, %q: parts %v", name, metric, got.Parts)
			}
			if !ok {
				continue
			}
			slope := slices.Clone(m.params.Grad(q))
			at := argMax(slope)
			const h = 1.0 / 1024
			var sides [2]float64
			for k, d := range []float32{h, -2 * h} {
				m.params.Value(q)[at] += d
				got := forward(t, m, randomPairs(m, 3), Control{})
				sides[k] = 2 * got.Parts[part(got, "distill_scores_teacher")].Value // of weight 2
			}
			if want := (sides[0] - sides[1]) / (2 * h); !(math.Abs(float64(slope[at])-want) <= 5e-3*math.Abs(want)+2e-4) {
				t.Errorf("%s, %q: slope %v of weight %d, differences say %v", name, metric, slope[at], at, want)
			}
		}
		for _, v := range losses[1:] {
			if !(math.Abs(v-losses[0]) <= 1e-6) {
				t.Errorf("%s: metrics start at %v", name, losses)
			}
		}
	}
}

// part is the place of a part by its name, -1 without.
func part(of *Result, name string) int {
	return slices.IndexFunc(of.Parts, func(p Part) bool { return p.Name == name })
}

// argMax is the place of the largest value without its sign.
func argMax(x []float32) (at int) {
	for i, v := range x {
		if math.Abs(float64(v)) > math.Abs(float64(x[at])) {
			at = i
		}
	}
	return at
}

// TestTeacherRefused: a teacher that reads other things, or cannot have a metric, and another one for the same run.
func TestTeacherRefused(t *testing.T) {
	with := func(set func(c *config.Config)) config.Config {
		c := tinyCLIP("sphere")
		set(&c)
		return c
	}
	for _, x := range []struct {
		teacher config.Config
		student config.Config
		want    string
	}{
		{with(func(c *config.Config) { c.Model.Image.Size = 24 }), taughtConfig(""), `objective.distill_scores.teacher: must read what this run reads: it reads images [3 24 24] (got "runs/teacher")`},
		{with(func(c *config.Config) {
			c.Model.Image.Mean, c.Model.Image.Std = []float64{.5, .5, .5}, []float64{.5, .5, .5}
		}), taughtConfig(""), "must take images that are normalised as those of this run"},
		{with(func(c *config.Config) {
			*c = scoreTeachers()["tokens"]
			c.Objective.ITC.Score = "gssf"
		}), taughtConfig("diag"), `compares tokens by a metric of its own, beside which there is no room for objective.distill_scores.metric = "diag"`},
		{scoreTeachers()["distance"], taughtConfig("diag"), "has a score that is not a product of features (l2)"},
		{with(func(*config.Config) {}), func() config.Config {
			c := taughtConfig("block_diag")
			c.Objective.DistillScores.Blocks = 3
			return c
		}(), "objective.distill_scores.blocks: must divide the 8 channels of the teacher (got 3)"},
	} {
		frozen, _ := opened(t, build(t, x.teacher, "builtin", 1))
		check.Fails(New(x.student, Options{Engine: newEngine(t), Vocab: tinyVocab, Teacher: frozen}))(t, x.want)
	}
	alone, err := New(taughtConfig(""), Options{Engine: newEngine(t), Vocab: tinyVocab})
	if err == nil {
		_, err = alone.Step(t.Context(), alone.feed(randomPairs(alone, 1), Control{}))
	}
	check.Error(t, err, "built without its teacher")

	teacher := build(t, with(func(*config.Config) {}), "builtin", 1)
	a, _ := opened(t, teacher)
	first := check.Get(newScoreTeacher(a, taughtConfig(""), &teacher.design, 5))(t)
	first.Counters()
	if err := first.CheckCounters(); err != nil {
		t.Error(err)
	}
	teacher.params.Values()[3]++
	b, _ := opened(t, teacher)
	second := check.Get(newScoreTeacher(b, taughtConfig(""), &teacher.design, 5))(t)
	second.saved = first.saved
	if err := second.CheckCounters(); err == nil || !strings.Contains(err.Error(), "objective.distill_scores.teacher: has other weights than the teacher that this run was started with") {
		t.Errorf("another teacher: %v", err)
	}
}
