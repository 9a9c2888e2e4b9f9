package tasks

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/data/utterances"
	"github.com/geoalign/geoalign/eval"
)

// SentimentPart is utterances of a part of the data.
type SentimentPart struct {
	Set *utterances.Set
	// Sentences are the words of the utterances, which the model encodes as a further modality; nil: none.
	Sentences []string
}

// SentimentTask predicts the sentiment of utterances from their modalities, pooled and concatenated, by one linear
// layer.
type SentimentTask struct {
	Encoder     SentenceEncoder // of sentences
	Train, Test SentimentPart
	Modalities  []string // that are concatenated
	Penalty     float64  // of the linear layer, see eval.FitLinear
}

// SentimentScores are those of the test utterances, beside always the mean of the training labels.
type SentimentScores struct {
	eval.Sentiment
	Constant eval.Sentiment
	Train    int // training utterances
	Width    int // features of an utterance
}

// Run encodes sentences, fits and predicts. It ends early with the error of ctx.
func (t SentimentTask) Run(ctx context.Context) (SentimentScores, error) {
	var s SentimentScores
	train, d, err := t.features(ctx, t.Train, "training")
	if err != nil {
		return s, err
	}
	test, width, err := t.features(ctx, t.Test, "test")
	if err != nil {
		return s, err
	}
	if d != width {
		return s, fmt.Errorf("tasks: training utterances have %d features and test utterances %d: they must be of the same encoders", d, width)
	}
	layer, err := eval.FitLinear(train, d, t.Train.Set.Labels, t.Penalty)
	if err != nil {
		return s, err
	}
	mean := 0.0
	for _, y := range t.Train.Set.Labels {
		mean += y / float64(len(t.Train.Set.Labels))
	}
	constant := make([]float64, len(t.Test.Set.Labels))
	for i := range constant {
		constant[i] = mean
	}
	s.Train, s.Width = len(t.Train.Set.Labels), d
	s.Sentiment = eval.MeasureSentiment(layer.Predict(test), t.Test.Set.Labels)
	s.Constant = eval.MeasureSentiment(constant, t.Test.Set.Labels)
	return s, nil
}

// features concatenates what the utterances of a part have: (n, d).
func (t SentimentTask) features(ctx context.Context, p SentimentPart, name string) (x []float32, d int, err error) {
	n := len(p.Set.Labels)
	var v Vectors
	if p.Sentences != nil {
		if len(p.Sentences) != n {
			return nil, 0, fmt.Errorf("tasks: %d sentences of %d %s utterances: give one each", len(p.Sentences), n,
				name)
		}
		if v, err = t.Encoder.Encode(ctx, p.Sentences, "encoding "+name+" sentences"); err != nil {
			return nil, 0, err
		}
	}
	for i := range n {
		if p.Sentences != nil {
			x = append(x, v.Row(p.Sentences[i])...)
		}
		for _, m := range t.Modalities {
			w := p.Set.Width[m]
			x = append(x, p.Set.Pooled[m][i*w:(i+1)*w]...)
		}
	}
	if n == 0 || len(x) == 0 {
		return nil, 0, fmt.Errorf("tasks: the %s utterances have no features: name modalities or sentences", name)
	}
	return x, len(x) / n, nil
}
