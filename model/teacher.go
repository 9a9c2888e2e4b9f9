package model

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/interact"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/state"
)

// TeacherKey is where the configuration names the frozen teacher of scores.
const TeacherKey = "objective.distill_scores.teacher"

// scoreTeacher is a frozen model that gives targets to scores (objective.distill_scores), in evaluation mode. Its
// parameters are read once, when the model that it teaches is made.
type scoreTeacher struct {
	m     *Model
	rows  int
	path  string // that the configuration names
	saved teacherCounters
	print string
}

// teacherCounters are what a checkpoint holds of a teacher.
type teacherCounters struct {
	Fingerprint string `json:"fingerprint"` // of its parameters
}

var (
	_ objectives.ScoreTeacher = (*scoreTeacher)(nil)
	_ state.Part              = (*scoreTeacher)(nil)
	_ state.Checker           = (*scoreTeacher)(nil)
	_ state.Optional          = (*scoreTeacher)(nil)
)

// newScoreTeacher reads the parameters of a teacher of batches of some rows, which the towers of d read too.
func newScoreTeacher(p *Model, cfg config.Config, d *design, rows int) (*scoreTeacher, error) {
	bad := func(hint, format string, args ...any) error {
		return config.Errors{{Path: TeacherKey, Value: cfg.Objective.DistillScores.Teacher,
			Msg: fmt.Sprintf(format, args...), Hint: hint}}
	}
	if p.design.views {
		return nil, bad("choose a run with images and texts", "must be a model of pairs (this one is of system %q)",
			p.cfg.Model.System)
	}
	t := &scoreTeacher{m: p, rows: rows, path: cfg.Objective.DistillScores.Teacher}
	given := slices.Concat(d.image.trained().Columns(), d.text.trained().Columns())
	for _, c := range t.Columns() {
		i := slices.IndexFunc(given, func(x batch.Column) bool { return x.Name == c.Name })
		if i < 0 || !slices.Equal(given[i].Shape, c.Shape) || given[i].Type != c.Type {
			return nil, bad("choose a run with the same data settings", "must read what this run reads: it reads %s %v",
				c.Name, c.Shape)
		}
	}
	im, own := p.cfg.Model.Image, cfg.Model.Image
	if !cfg.Has(section.Stored) && !cfg.Has(section.Regions) &&
		(!slices.Equal(im.Mean, own.Mean) || !slices.Equal(im.Std, own.Std)) {
		return nil, bad("choose a run with the same data settings",
			"must take images that are normalised as those of this run, by model.image.mean = %v and std = %v (it takes %v and %v)", own.Mean, own.Std, im.Mean, im.Std)
	}
	if metric := cfg.Objective.DistillScores.Metric; metric != "" {
		if p.design.interaction != nil {
			if p.cfg.Has(section.Metric) && p.cfg.Objective.GSSF.Form != encoders.MetricCosine {
				return nil, bad("set objective.distill_scores.metric = \"\"",
					"compares tokens by a metric of its own, beside which there is no room for objective.distill_scores.metric = %q",
					metric)
			}
		} else if s, err := p.PairScore(); err != nil || !s.Folds() {
			return nil, bad("set objective.distill_scores.metric = \"\"",
				"has a score that is not a product of features (%v), which objective.distill_scores.metric needs", s)
		}
	}
	if cfg.Ranks > 1 && cfg.Parallel.Contrast == config.OfAllRanks { // which exchange features
		if s, err := p.PairScore(); t.Dim() == 0 || err != nil || !s.Folds() {
			return nil, bad(`set parallel.contrast = "local", or start one process`,
				"has scores that are no products of features, which %d processes need", cfg.Ranks)
		}
	}
	if _, err := cfg.Objective.DistillScores.MetricOf(p.Dim()); err != nil {
		return nil, err
	}
	if err := t.load(); err != nil {
		return nil, fmt.Errorf("%s: %w", TeacherKey, err)
	}
	return t, nil
}

// load reads the parameters by compiling what they are asked for by, and takes their fingerprint.
func (t *scoreTeacher) load() error {
	of, tokens := readFeatures, t.m.design.interaction != nil
	if tokens {
		of = readTokens
	}
	for _, e := range []*Encoder{t.m.image, t.m.text} {
		if _, err := e.encodings.get(shape{1, e.Len(), of}); err != nil {
			return err
		}
	}
	if tokens {
		if _, err := t.m.interaction.scores.get(blockOfPairs{t.rows, t.rows}); err != nil {
			return err
		}
	} else if _, err := t.m.PairScore(); err != nil {
		return err
	}
	names := slices.Clone(t.m.params.list)
	slices.SortFunc(names, func(a, b *Param) int { return slices.Compare([]byte(a.Name), []byte(b.Name)) })
	h := sha256.New()
	for _, q := range names {
		fmt.Fprintf(h, "%s %v ", q.Name, []int(q.Shape))
		if err := binary.Write(h, binary.LittleEndian, t.m.params.Value(q)); err != nil {
			return err
		}
	}
	t.print = hex.EncodeToString(h.Sum(nil)[:16])
	return nil
}

// Columns implements objectives.ScoreTeacher.
func (t *scoreTeacher) Columns() []batch.Column {
	return slices.Concat(t.m.image.Columns(), t.m.text.Columns())
}

// Dim implements objectives.ScoreTeacher.
func (t *scoreTeacher) Dim() int {
	if t.m.design.interaction != nil {
		return 0
	}
	return t.m.Dim()
}

// Features implements objectives.ScoreTeacher.
func (t *scoreTeacher) Features(b *batch.Batch, side objectives.Modality, dst []float32) error {
	if side == objectives.Text {
		y, err := t.m.text.Features(context.Background(), b)
		copy(dst, y)
		return err
	}
	x, err := t.m.image.Features(context.Background(), b)
	if err != nil {
		return err
	}
	s, err := t.m.PairScore()
	if err != nil {
		return err
	}
	return s.FoldImages(dst, x, b.Rows())
}

// Scores implements objectives.ScoreTeacher.
func (t *scoreTeacher) Scores(b *batch.Batch, dst []float32) error {
	ctx, n := context.Background(), b.Rows()
	if t.m.design.interaction != nil {
		x, xn, err := t.m.image.EncodeTokens(ctx, b)
		if err != nil {
			return err
		}
		y, yn, err := t.m.text.EncodeTokens(ctx, b)
		if err != nil {
			return err
		}
		s, err := t.m.interaction.Scores(ctx, x, xn, y, yn)
		copy(dst, s)
		return err
	}
	x, err := t.m.image.Features(ctx, b)
	if err != nil {
		return err
	}
	y, err := t.m.text.Features(ctx, b)
	if err != nil {
		return err
	}
	s, err := t.m.PairScore()
	if err != nil {
		return err
	}
	return s.Rows(t.m.engine, x, n, y, n, dst)
}

// taught is the teacher as a step asks for it.
func (t *scoreTeacher) taught() objectives.ScoreTeacher {
	if t.m.design.interaction != nil {
		return tokenTeacher{t}
	}
	return t
}

// tokenTeacher is a scoreTeacher that compares tokens.
type tokenTeacher struct{ *scoreTeacher }

var _ objectives.TokenTeacher = tokenTeacher{}

// Local implements objectives.TokenTeacher.
func (t tokenTeacher) Local(s *objectives.Step, side objectives.Modality) encoders.Local {
	e := t.m.image
	if side == objectives.Text {
		e = t.m.text
	}
	q, err := e.sequence()
	objectives.Need(err == nil, "distill_scores", "%w", err)
	rows, lengths := make([]float32, s.Rows*q.Len*e.Dim()), make([]int32, s.Rows)
	s.OnFill(func(f *feed.Step) error {
		x, n, err := e.EncodeTokens(context.Background(), f.Batch)
		copy(rows, x)
		copy(lengths, n)
		return err
	})
	name := "teacher/" + e.side.name
	q.Lengths = s.SharedInts(name+" lengths", lengths, s.Rows)
	raw := s.SharedFloats(name+" tokens", rows, s.Rows*q.Len, e.Dim())
	return q.Local(e.side.head.(encoders.TokenHead), raw, t.m.cfg.Model.Interaction.ClassTokens)
}

// Interaction implements objectives.TokenTeacher.
func (t tokenTeacher) Interaction(metric encoders.Metric) encoders.Interaction {
	o := t.m.cfg.Model.Interaction
	o.Metric = interact.MetricSimilarity
	return o.Interaction(t.m.Dim(), metric)
}

// Frozen implements objectives.TokenTeacher.
func (t tokenTeacher) Frozen(name string, shape ...int) ([]float32, error) {
	return t.m.values(name, shape...)
}

// StateName implements state.Part.
func (t *scoreTeacher) StateName() string { return "teacher" }

// StateVersion implements state.Part.
func (t *scoreTeacher) StateVersion() int { return 1 }

// Counters implements state.Part.
func (t *scoreTeacher) Counters() any {
	t.saved.Fingerprint = t.print
	return &t.saved
}

// Tensors implements state.Part: its parameters stay in its own checkpoint.
func (t *scoreTeacher) Tensors() []state.Tensor { return nil }

// CheckCounters implements state.Checker.
func (t *scoreTeacher) CheckCounters() error {
	if t.saved.Fingerprint == t.print {
		return nil
	}
	return config.Errors{{Path: TeacherKey, Value: t.path,
		Msg: fmt.Sprintf("has other weights than the teacher that this run was started with (fingerprint %s, then %s)",
			t.print, t.saved.Fingerprint),
		Hint: "give the teacher of the start, or start anew with --resume never"}}
}

// Absent implements state.Optional: distillation was added to a run.
func (t *scoreTeacher) Absent() error { return nil }
