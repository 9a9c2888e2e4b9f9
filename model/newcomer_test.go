package model

import (
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/objectives"
)

// smoothed is a loss of another module: a contrast within the batch whose targets have a share of the uniform distribution.
type smoothed struct {
	section.Weighted
	Smoothing float64 `toml:"smoothing"`
}

func (l *smoothed) Defaults()                { *l = smoothed{Smoothing: 0.1} }
func (l *smoothed) Check(k *section.Checker) { k.BelowOne("smoothing") }
func (l *smoothed) Needs() []section.Fact    { return []section.Fact{section.Captions} }
func (l *smoothed) Gives() []section.Fact {
	return []section.Fact{section.PairScores, section.Temperature, section.Contrast}
}
func (l *smoothed) Prepare(s *objectives.Step) { s.ReadPairs() }

func (l *smoothed) Build(s *objectives.Step) []objectives.Part {
	logits := s.Scores.Divisor().Divide(s.PairScores())
	share := s.SharedFloats("smoothed share", []float32{float32(l.Smoothing)})
	loss := objectives.InBatchContrast(logits, objectives.Positives{Labels: s.Own(), Uniform: share}).Loss
	return []objectives.Part{s.Part("smoothed", l.Weight, loss)}
}

// greedy is a loss that needs what nothing gives, idle one that needs a queue.
type (
	greedy struct{ section.Weighted }
	idle   struct{ section.Weighted }
)

func (*greedy) Needs() []section.Fact { return []section.Fact{"gold"} }
func (*idle) Needs() []section.Fact   { return []section.Fact{section.Queue} }

const alone = `
[model]
system = "clip"
[model.image]
size = 16
patch = 8
depth = 2
width = 16
heads = 2
[model.text]
layers = 2
fusion_layers = 0
width = 24
heads = 2
positions = 10
[model.head]
dim = 8
[momentum]
enabled = false
[queue]
size = 0
[train]
batch_size = 4
[data]
tokens = 6
views = 1
[objective.itc]
weight = 0
temperature = 0.2
[objective.distill]
alpha = 0
[objective.itm]
weight = 0
[objective.mlm]
weight = 0
[objective.smoothed]
`

// TestNewLoss: a loss with a section of its own, by nothing but its type: it counts as a loss, what it reads is read, a model is built
// of it, and two models of one configuration have each their own.
func TestNewLoss(t *testing.T) {
	cfg, err := config.Parse("x.toml", []byte(alone+"weight = 2"), nil, config.Add[smoothed]("objective.smoothed"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range cfg.Advice() {
		if strings.Contains(line, "nothing reads") {
			t.Error(line)
		}
	}
	m := build(t, cfg, "builtin", 1)
	var names []string
	for _, p := range m.step.parts {
		names = append(names, p.Name)
	}
	if !slices.Equal(names, []string{"smoothed"}) || m.Temperature() != float64(float32(0.2)) {
		t.Errorf("the parts are %q, the temperature is %v", names, m.Temperature())
	}
	a, b := newLosses(cfg, Options{})[0], newLosses(cfg, Options{})[0]
	if a == b || a.(*smoothed).Weight != 2 {
		t.Errorf("losses of two models are %v and %v", a, b)
	}
}

// TestNewLossIsChecked: bad sections of a loss of another module.
func TestNewLossIsChecked(t *testing.T) {
	one := config.Add[smoothed]("objective.smoothed")
	for name, x := range map[string]struct {
		text  string
		added []config.Added
		want  string
	}{
		"off": {alone + "smoothing = 0.2", []config.Added{one},
			"objective.itc.weight: no loss is on (got 0); set at least one objective weight above 0, such as objective.smoothed.weight, since objective.smoothed.smoothing is set"},
		"value":     {alone + "weight = -1", []config.Added{one}, "objective.smoothed.weight: must be >= 0 (got -1)"},
		"twice":     {alone, []config.Added{one, one}, "objective.smoothed: is registered twice; give the section another name"},
		"of ours":   {alone, []config.Added{config.Add[smoothed]("objective.itm")}, "objective.itm: is registered twice"},
		"not given": {alone + "weight = 1", []config.Added{config.Add[greedy]("objective.smoothed")}, `objective.smoothed.weight: must be 0 (got 1); nothing gives "gold": add a section that does`},
		"no queue":  {alone + "weight = 1", []config.Added{config.Add[idle]("objective.smoothed")}, "objective.smoothed.weight: must be 0 (got 1); there is no queue of past features: set queue.size > 0"},
		"system": {strings.Replace(alone, `"clip"`, `"moco"`, 1) + "weight = 1", []config.Added{one},
			`objective.smoothed.weight: must be 0 (got 1); model.system "moco" has no pairs of images and captions: use "albef"`},
	} {
		if _, err := config.Parse("x.toml", []byte(x.text), nil, x.added...); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: got  %v\nwant %s", name, err, x.want)
		}
	}
}
