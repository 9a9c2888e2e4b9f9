package run

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/data/evalfiles"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/eval/tasks"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// sentiment predicts the sentiment of the utterances of eval.sentiment, whatever the split.
func (e Evaluation) sentiment(ctx context.Context) (Scores, error) {
	c := e.Config
	if err := e.noWords(); err != nil {
		return nil, err
	}
	train, test, err := e.Set.files().openSentiment(c)
	if err != nil {
		return nil, err
	}
	s, err := tasks.SentimentTask{
		Encoder: e.sentenceEncoder(), Modalities: c.Eval.Sentiment.Modalities, Penalty: c.Eval.Sentiment.Decay,
		Train: tasks.SentimentPart{Set: train.Set, Sentences: train.Sentences}, Test: tasks.SentimentPart{Set: test.Set, Sentences: test.Sentences},
	}.Run(ctx)
	out := Sentiment{SentimentScores: s}
	for _, part := range []evalfiles.Sentiment{train, test} {
		out.NotFinite += part.Set.NotFinite
	}
	return out, err
}

// Sentiment is the outcome of the prediction of sentiments.
type Sentiment struct {
	tasks.SentimentScores
	NotFinite int // numbers of the files that are none
}

// Task implements Scores.
func (Sentiment) Task() string { return TaskSentiment }

// Metric is the accuracy of seven classes.
func (s Sentiment) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: logPrefix(s.Task()) + "accuracy7", Value: s.Accuracy7}
}

// Values implements Scores.
func (s Sentiment) Values() map[string]float64 {
	m := map[string]float64{}
	for _, v := range s.Sentiment.Values() {
		m[v.Name] = v.Value
	}
	for _, v := range s.Constant.Values() {
		m["constant_"+v.Name] = v.Value
	}
	return m
}

// Line implements Scores.
func (s Sentiment) Line() string {
	return fmt.Sprintf("sentiment accuracy-7 %.2f accuracy-2 %.2f F1 %.2f MAE %.3f correlation %.3f", s.Accuracy7, s.Accuracy2, s.F1, s.MAE, s.Pearson)
}

// Size implements Scores.
func (s Sentiment) Size() string {
	return fmt.Sprintf("%s, %s, %d features", words.Count(s.Train, "training utterance"), words.Count(s.Rows, "utterance"), s.Width)
}

// Table implements Scores.
func (s Sentiment) Table() string {
	rows := [][]string{{"sentiment", "accuracy-7 %", "accuracy-2 %", "F1 %", "not negative %", "MAE", "correlation"}}
	for _, x := range []struct {
		name string
		eval.Sentiment
	}{{"linear layer", s.Sentiment}, {"always the mean", s.Constant}} {
		rows = append(rows, []string{x.name, fmt.Sprintf("%.2f", x.Accuracy7), fmt.Sprintf("%.2f", x.Accuracy2), fmt.Sprintf("%.2f", x.F1), fmt.Sprintf("%.2f", x.NonNegative), fmt.Sprintf("%.4f", x.MAE), fmt.Sprintf("%.4f", x.Pearson)})
	}
	text := aligned(rows)
	if s.NotFinite > 0 {
		text += fmt.Sprintf("\n%s of the files are no finite numbers and read as 0.\n", words.Count(s.NotFinite, "number"))
	}
	return text
}

// JSON implements Scores.
func (s Sentiment) JSON(_, path string) any {
	return map[string]any{"task": s.Task(), "path": path, "train": s.Train, "utterances": s.Rows, "features": s.Width, "not_finite": s.NotFinite, "values": s.Values()}
}
