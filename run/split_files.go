package run

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/evalfiles"
	"github.com/geoalign/geoalign/data/sentencepairs"
	"github.com/geoalign/geoalign/data/source"
)

// evalFiles are files that tasks read beside or instead of images and texts. Each is read when it is first asked for, and kept for
// the next evaluations of a run.
type evalFiles struct {
	sentences []evalfiles.Sentences // of eval.sentences
	sentiment []evalfiles.Sentiment // of eval.sentiment: training and test utterances
	pairs     *sentencepairs.Set    // of eval.split
	examples  data.Examples         // of eval.split
	answers   []string              // that are candidates, see source.Candidates
	zeroShot  *data.Eval            // of eval.zeroshot.images
}

// files are those of the split; a nil split keeps none.
func (s *Split) files() *evalFiles {
	if s == nil {
		return &evalFiles{}
	}
	return &s.kept
}

// openSentences returns the pairs of eval.sentences. The error is that of source.OpenSentences.
func (f *evalFiles) openSentences(cfg config.Config) (list []evalfiles.Sentences, err error) {
	if f.sentences == nil {
		f.sentences, err = evalfiles.OpenSentences(cfg)
	}
	return f.sentences, err
}

// openSentiment returns the utterances of eval.sentiment. The error is that of source.OpenSentiment.
func (f *evalFiles) openSentiment(cfg config.Config) (train, test evalfiles.Sentiment, err error) {
	if f.sentiment == nil {
		if train, test, err = evalfiles.OpenSentiment(cfg); err != nil {
			return train, test, err
		}
		f.sentiment = []evalfiles.Sentiment{train, test}
	}
	return f.sentiment[0], f.sentiment[1], nil
}

// openPairs returns the pairs of sentences of eval.split. The error is that of source.SentencePairs.
func (f *evalFiles) openPairs(cfg config.Config) (set *sentencepairs.Set, err error) {
	if f.pairs == nil {
		f.pairs, err = source.OpenSentencePairs(cfg.Source(), cfg.Eval.Split)
	}
	return f.pairs, err
}

// openCandidates returns the candidate answers of questions. The error is that of source.Candidates.
func (f *evalFiles) openCandidates(ctx context.Context, cfg config.Config) (list []string, err error) {
	if f.answers == nil {
		f.answers, err = evalfiles.Candidates(ctx, cfg, source.Options{})
	}
	return f.answers, err
}

// openZeroShot returns the images of eval.zeroshot.images, nil where it names none. The error is that of source.ZeroShotSet.
func (f *evalFiles) openZeroShot(cfg config.Config) (set *data.Eval, err error) {
	if f.zeroShot == nil {
		f.zeroShot, err = evalfiles.ZeroShotSet(cfg)
	}
	return f.zeroShot, err
}

// openExamples returns the samples of a downstream task of eval.split, whose files were looked for. The error is that of source.Examples.
func (f *evalFiles) openExamples(ctx context.Context, cfg config.Config) (x data.Examples, err error) {
	if f.examples != nil {
		return f.examples, nil
	}
	if x, err = source.OpenExamples(ctx, cfg.Source(), cfg.Eval.Split, source.Options{}); err != nil {
		return nil, err
	}
	if err := allowed(cfg, data.FindExampleFiles(ctx, x, findWorkers, nil)); err != nil {
		return nil, fmt.Errorf("eval.split %q: %w", cfg.Eval.Split, err)
	}
	f.examples = x
	return x, nil
}
