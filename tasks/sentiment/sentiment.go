package sentiment

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/data/utterances"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/tasks/sentences"
)

// Part is utterances of a part of the data.
type Part struct {
	Set *utterances.Set
	// Sentences are the words of the utterances, which the model encodes as a further modality; nil: none.
	Sentences []string
}

// Sentiment predicts the sentiment of utterances from their modalities, pooled and concatenated, by one linear layer.
type Sentiment struct {
	Encoder     sentences.SentenceEncoder // of sentences
	Train, Test Part
	Modalities  []string // that are concatenated
	Penalty     float64  // of the linear layer, see eval.FitLinear
}

// Run encodes sentences, fits and predicts. It ends early with the error of ctx.
func (t Sentiment) Run(ctx context.Context) (Scores, error) {
	var s Scores
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
	s.Emotions, err = t.emotions(train, test, d)
	return s, err
}

// emotions tells each emotion that both parts have by a linear layer of its own, fitted to 1 where an utterance has any
// of it and 0 elsewhere: it is there where the layer says more than the share of training utterances with it.
func (t Sentiment) emotions(train, test []float32, d int) ([]eval.Emotion, error) {
	if t.Train.Set.Emotions == nil || t.Test.Set.Emotions == nil {
		return nil, nil
	}
	var list []eval.Emotion
	for k := range utterances.Emotions {
		known := t.Train.Set.Emotions[k]
		targets, share := make([]float64, len(known)), 0.0
		for i, strength := range known {
			if strength > 0 {
				targets[i] = 1
				share += 1 / float64(len(known))
			}
		}
		layer, err := eval.FitLinear(train, d, targets, t.Penalty)
		if err != nil {
			return nil, err
		}
		var told, has []bool
		for i, v := range layer.Predict(test) {
			told, has = append(told, v > share), append(has, t.Test.Set.Emotions[k][i] > 0)
		}
		list = append(list, eval.MeasureEmotion(told, has))
	}
	return list, nil
}

// features concatenates what the utterances of a part have: (n, d).
func (t Sentiment) features(ctx context.Context, p Part, name string) (x []float32, d int, err error) {
	n := len(p.Set.Labels)
	var v sentences.Vectors
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
