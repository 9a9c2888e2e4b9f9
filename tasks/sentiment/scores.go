package sentiment

import (
	"fmt"

	"github.com/geoalign/geoalign/data/utterances"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// Scores are those of the test utterances, beside always the mean of the training labels.
type Scores struct {
	eval.Sentiment
	Constant eval.Sentiment
	Emotions []eval.Emotion // of utterances.Emotions; nil: the files lack them
	Train    int            // training utterances
	Width    int            // features of an utterance
	// NotFinite is the numbers of the files that are none.
	NotFinite int
}

// Task implements tasks.Scores.
func (Scores) Task() string { return Name }

// Metric is the accuracy of seven classes.
func (s Scores) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: tasks.Logged(Name, "accuracy7"), Value: s.Accuracy7}
}

// Values implements tasks.Scores.
func (s Scores) Values() map[string]float64 {
	m := tasks.Values(s.Sentiment.Values())
	for _, v := range s.Constant.Values() {
		m["constant_"+v.Name] = v.Value
	}
	for k, e := range s.Emotions {
		name := utterances.Emotions[k]
		m[name+"/weighted_accuracy"], m[name+"/f1"] = e.WeightedAccuracy, e.F1
	}
	return m
}

// Line implements tasks.Scores.
func (s Scores) Line() string {
	return fmt.Sprintf("sentiment accuracy-7 %.2f accuracy-2 %.2f F1 %.2f MAE %.3f correlation %.3f", s.Accuracy7,
		s.Accuracy2, s.F1, s.MAE, s.Pearson)
}

// Size implements tasks.Scores.
func (s Scores) Size() string {
	return fmt.Sprintf("%s, %s, %d features", words.Count(s.Train, "training utterance"),
		words.Count(s.Rows, "utterance"), s.Width)
}

// Table implements tasks.Scores.
func (s Scores) Table() string {
	rows := [][]string{{"sentiment", "accuracy-7 %", "accuracy-2 %", "F1 %", "not negative %", "MAE", "correlation"}}
	for _, x := range []struct {
		name string
		eval.Sentiment
	}{{"linear layer", s.Sentiment}, {"always the mean", s.Constant}} {
		rows = append(rows, []string{x.name, fmt.Sprintf("%.2f", x.Accuracy7), fmt.Sprintf("%.2f", x.Accuracy2),
			fmt.Sprintf("%.2f", x.F1), fmt.Sprintf("%.2f", x.NonNegative), fmt.Sprintf("%.4f", x.MAE),
			fmt.Sprintf("%.4f", x.Pearson)})
	}
	text := tasks.Aligned(rows)
	if s.Emotions != nil {
		rows = [][]string{{"emotion", "share %", "weighted accuracy %", "F1 %"}}
		for k, e := range s.Emotions {
			rows = append(rows, []string{utterances.Emotions[k], fmt.Sprintf("%.2f", e.Share),
				fmt.Sprintf("%.2f", e.WeightedAccuracy), fmt.Sprintf("%.2f", e.F1)})
		}
		text += "\n" + tasks.Aligned(rows)
	}
	if s.NotFinite > 0 {
		text += fmt.Sprintf("\n%s of the files are not finite numbers and read as 0.\n",
			words.Count(s.NotFinite, "number"))
	}
	return text
}

// JSON implements tasks.Scores.
func (s Scores) JSON(_, path string) any {
	return map[string]any{"task": s.Task(), "path": path, "train": s.Train, "utterances": s.Rows, "features": s.Width,
		"not_finite": s.NotFinite, "values": s.Values()}
}
