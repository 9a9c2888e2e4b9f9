package sentences

import (
	"context"
	"slices"

	"github.com/geoalign/geoalign/data/sentencepairs"
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
	r.Classes, r.Constant, r.Nearest = spec.Classes, make([]float64, k), int(spec.Near[0])
	for l := range r.Constant {
		r.Constant[l] = shareOf(p.Labels, func(int) int32 { return int32(l) })
	}
	var known []sentencepairs.Pair // of training, where a rule is fitted to them
	switch {
	case s.fitted() && t.Train == nil:
		r.Skipped = "there are no training pairs for the rules that are fitted"
	case s.fitted():
		known = t.Train.Pairs
		r.Train = len(known)
	}
	r.Rules, r.Thresholds = s.byCosine(spec, p.Labels, p.Cosines, cosines(v, known), known)
	all := sentencesOf(slices.Concat(pairs, known))
	r.WordRules, _ = s.byCosine(spec, p.Labels, byWords(pairs, all), byWords(known, all), known)
	if known == nil || !slices.Contains(s.Rules, ProbeRule) {
		return nil
	}
	x, err := s.Classify(ctx, probe.Labelled{Features: related(v, known), Labels: labelsOf(known)},
		probe.Labelled{Features: related(v, pairs), Labels: p.Labels}, spec.Classes, s.Encoder.Progress)
	if err != nil {
		return err
	}
	r.Rules[ProbeRule] = x.Top1
	return nil
}

// byCosine returns the share of pairs in percent whose class each rule of the cosine tells right, and the thresholds of
// TunedRule, which needs known pairs with their cosines.
func (s Sentences) byCosine(spec sentencepairs.Task, labels []int32, cosines, knownCosines []float64,
	known []sentencepairs.Pair) (rules map[string]float64, tuned eval.Thresholds) {
	k := len(spec.Classes)
	rules = map[string]float64{}
	place := func(cut eval.Thresholds) float64 {
		return shareOf(labels, func(i int) int32 { return spec.Near[cut.Place(cosines[i])] })
	}
	if slices.Contains(s.Rules, FixedRule) {
		rules[FixedRule] = place(eval.FixedThresholds(k))
	}
	if slices.Contains(s.Rules, KMeansRule) {
		cut := eval.ClusterThresholds(cosines, k)
		clusters := make([]int, len(cosines))
		for i, c := range cosines {
			clusters[i] = cut.Place(c)
		}
		class := eval.MatchClusters(clusters, labels, k)
		rules[KMeansRule] = shareOf(labels, func(i int) int32 { return class[clusters[i]] })
	}
	if slices.Contains(s.Rules, TunedRule) && known != nil {
		tuned = eval.TuneThresholds(knownCosines, labelsOf(known), spec.Near)
		rules[TunedRule] = place(tuned)
	}
	return rules, tuned
}

// shareOf is the share of labels that are told right, in percent.
func shareOf(labels []int32, told func(i int) int32) float64 {
	right := 0
	for i, l := range labels {
		if told(i) == l {
			right++
		}
	}
	return 100 * float64(right) / float64(len(labels))
}

// labelsOf lists the classes of pairs.
func labelsOf(pairs []sentencepairs.Pair) []int32 {
	list := make([]int32, len(pairs))
	for i, x := range pairs {
		list[i] = x.Label
	}
	return list
}

// fitted says whether a rule is fitted to training pairs.
func (s Sentences) fitted() bool {
	return slices.Contains(s.Rules, TunedRule) || slices.Contains(s.Rules, ProbeRule)
}
