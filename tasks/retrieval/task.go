// Package retrieval is image-text retrieval, in both directions.
package retrieval

import (
	"context"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/tasks"
)

// Name is the name of the task.
const Name = "retrieval"

// Task is image-text retrieval. A checkpoint is fine-tuned for it as ALBEF is: contrast and matching without masked
// language modelling, and all captions of an image positives of each other.
var Task = tasks.Task{
	Name:     Name,
	Needs:    []tasks.Need{tasks.NeedsTexts, tasks.NeedsImages},
	Evaluate: evaluate,
	Kept:     kept,
	Numbers: func() map[string]float64 {
		return Scores{Rerank: &eval.Metrics{}, Precision: &eval.Precision{}}.Values()
	},
	Finetune: &tasks.Finetune{Sets: []string{"objective.mlm.weight=0", "objective.itc.positives=id"}},
}

// Options are what [eval] and [train] say of retrieval.
type Options struct {
	MeanTies  bool
	RerankTop int
	RerankSum bool // by the sum of log-odds and pair score
	Folds     int
	KeepBy    string // train.keep_best_by
	Dims      []int  // leading channels that pairs are scored by too, see objectives.Matryoshka
}

func evaluate(ctx context.Context, s *tasks.Setup) (tasks.Scores, error) {
	own, err := NewMember(s)
	if err != nil {
		return nil, err
	}
	var with []Member
	for _, x := range s.With {
		m, err := NewMember(x)
		if err != nil {
			return nil, err
		}
		with = append(with, m)
	}
	o := tasks.Of[Options](s)
	r := Retrieval{
		Member: own, With: with, Encoding: s.Encoding, Matcher: s.Model.Matcher, TextImage: s.Galleries.TextImage,
		ImageID: s.Galleries.ImageID, MeanTies: o.MeanTies, RerankTop: o.RerankTop, Folds: o.Folds,
		Dims: o.Dims,
	}
	if o.RerankSum {
		if r.RerankTemperature, err = s.Model.Temperature(); err != nil {
			return nil, err
		}
	}
	scores, err := r.Run(ctx)
	scores.KeepBy = o.KeepBy
	return scores, err
}

// kept lists the rankings that compare checkpoints. Logs of earlier versions have one, of the last ranking.
func kept(s *tasks.Setup, logged func(name string) bool) []tasks.Kept {
	first := tasks.Kept{Key: metric(eval.First), Name: "mean recall by the pair score"}
	reranked := tasks.Kept{Key: metric(eval.Reranked), Name: "mean recall, re-ranked"}
	by := tasks.Of[Options](s).KeepBy
	switch {
	case !logged(first.Key):
		return []tasks.Kept{{Key: metric(""), Name: "mean recall"}}
	case !logged(reranked.Key) || by == eval.First:
		return []tasks.Kept{first}
	case by == eval.Reranked:
		return []tasks.Kept{reranked}
	}
	return []tasks.Kept{first, reranked}
}
