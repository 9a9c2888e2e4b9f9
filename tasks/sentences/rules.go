package sentences

import (
	"context"
	"slices"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/tasks/probe"
)

// Rules by which a class of a pair is told.
const (
	FixedRule = "fixed" // thresholds of the cosine that part 0 to 1 evenly
	TunedRule = "tuned" // those that are best on training pairs
	// clusters of the cosines of the pairs themselves, each a class, matched as it fits the labels best
	KMeansRule = "kmeans"
	ProbeRule  = "probe" // a linear classifier on |u-v| and u*v of training pairs
)

// classes tells the classes of the pairs of a task by every rule; p has their cosines and labels.
func (s Sentences) classes(ctx context.Context, r *PairScores, t PairTask, v Vectors, p *Picture) error {
	spec, pairs := t.Test.Task, t.Test.Pairs
	k := len(spec.Classes)
	r.Classes, r.Rules, r.Constant, r.Nearest = spec.Classes, map[string]float64{}, make([]float64, k),
		int(spec.Near[0])
	share := func(told func(i int) int32) float64 {
		right := 0
		for i, l := range p.Labels {
			if told(i) == l {
				right++
			}
		}
		return 100 * float64(right) / float64(len(pairs))
	}
	for l := range r.Constant {
		r.Constant[l] = share(func(int) int32 { return int32(l) })
	}
	if slices.Contains(s.Rules, FixedRule) {
		cut := eval.FixedThresholds(k)
		r.Rules[FixedRule] = share(func(i int) int32 { return spec.Near[cut.Place(p.Cosines[i])] })
	}
	if slices.Contains(s.Rules, KMeansRule) {
		cut := eval.ClusterThresholds(p.Cosines, k)
		clusters := make([]int, len(pairs))
		for i, c := range p.Cosines {
			clusters[i] = cut.Place(c)
		}
		class := eval.MatchClusters(clusters, p.Labels, k)
		r.Rules[KMeansRule] = share(func(i int) int32 { return class[clusters[i]] })
	}
	if !s.fitted() {
		return nil
	}
	if t.Train == nil {
		r.Skipped = "there are no training pairs for the rules that are fitted"
		return nil
	}
	train := t.Train.Pairs
	r.Train = len(train)
	labels := make([]int32, len(train))
	for i, x := range train {
		labels[i] = x.Label
	}
	if slices.Contains(s.Rules, TunedRule) {
		cut := eval.TuneThresholds(cosines(v, train), labels, spec.Near)
		r.Thresholds = cut
		r.Rules[TunedRule] = share(func(i int) int32 { return spec.Near[cut.Place(p.Cosines[i])] })
	}
	if slices.Contains(s.Rules, ProbeRule) {
		x, err := s.Classify(ctx, probe.Labelled{Features: related(v, train), Labels: labels},
			probe.Labelled{Features: related(v, pairs), Labels: p.Labels}, spec.Classes, s.Encoder.Progress)
		if err != nil {
			return err
		}
		r.Rules[ProbeRule] = x.Top1
	}
	return nil
}

// fitted says whether a rule is fitted to training pairs.
func (s Sentences) fitted() bool {
	return slices.Contains(s.Rules, TunedRule) || slices.Contains(s.Rules, ProbeRule)
}
