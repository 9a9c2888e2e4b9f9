package tasks_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/sentencepairs"
	"github.com/geoalign/geoalign/data/utterances"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/probe"
	"github.com/geoalign/geoalign/tasks/sentences"
	"github.com/geoalign/geoalign/tasks/sentiment"
)

// angles is a text tower whose sentences are degrees: the class token is the direction of the number in the plane, the
// head turns it by a right angle, and each further token stands a degree on.
type angles struct{}

func (angles) Columns() []batch.Column { return captions.Columns() }
func (angles) Len() int                { return fakeTokens }
func (angles) Width() int              { return 2 }
func (angles) Dim() int                { return 2 }

func direction(degrees float64) []float32 {
	s, c := math.Sincos(degrees * math.Pi / 180)
	return []float32{float32(3 * c), float32(3 * s)}
}

func (a angles) Encode(_ context.Context, b *batch.Batch) (states, features []float32, err error) {
	for i := range b.Rows() {
		x := float64(b.Row(i).Ints(batch.Tokens)[1])
		if x == 666 {
			return nil, nil, errFake
		}
		if x == 555 {
			x = math.Inf(1) // whose direction is not a number
		}
		for k := range fakeTokens {
			states = append(states, direction(x+float64(k))...)
		}
		features = append(features, direction(x+90)...)
	}
	return states, features, nil
}

func (a angles) Features(ctx context.Context, b *batch.Batch) ([]float32, error) {
	_, features, err := a.Encode(ctx, b)
	return features, err
}

func (a angles) EncodeClasses(ctx context.Context, b *batch.Batch) ([]float32, error) {
	return firstTokens(ctx, a, b)
}

// sentenceRows is a gallery that counts what is read of it.
type sentenceRows struct {
	list []string
	read *int
}

func (s sentenceRows) Len() int             { return len(s.list) }
func (sentenceRows) Columns() []data.Column { return captions.Columns() }

func (s sentenceRows) Fill(i int, row batch.Row) error {
	*s.read++
	captions.Fill(s.list[i], row)
	return nil
}

// angleEncoder is a sentences.SentenceEncoder of angles, with the number of sentences that were read.
func angleEncoder(feature string) (sentences.SentenceEncoder, *int) {
	read := new(int)
	return sentences.SentenceEncoder{Model: angles{}, Feature: feature, Gallery: func(list []string) data.Gallery { return sentenceRows{list, read} }, Encoding: tasks.Encoding{BatchSize: 4, Workers: 1}}, read
}

// TestSentenceEncoder: each different sentence is read once, whatever stands for it.
func TestSentenceEncoder(t *testing.T) {
	for feature, want := range map[string][]float32{
		sentences.ClassFeature: direction(31), sentences.HeadFeature: direction(121),
		// Of 31 three tokens are no padding, of 30 two.
		sentences.MeanFeature: {(direction(31)[0] + direction(32)[0] + direction(33)[0]) / 3, (direction(31)[1] + direction(32)[1] + direction(33)[1]) / 3},
	} {
		e, read := angleEncoder(feature)
		v := check.Get(e.Encode(t.Context(), []string{"120", "31", "30", "31", "7", "120"}, "encoding"))(t)
		if *read != 4 || v.Width != 2 || len(v.X) != 8 {
			t.Errorf("%s: %d sentences were read, %d numbers", feature, *read, len(v.X))
		}
		for k, x := range v.Row("31") {
			if !(math.Abs(float64(x-want[k])) <= 1e-5) {
				t.Errorf("%s: %v, want %v", feature, v.Row("31"), want)
			}
		}
		if feature == sentences.MeanFeature {
			if got, want := v.Row("30")[0], (direction(30)[0]+direction(31)[0])/2; !(math.Abs(float64(got-want)) <= 1e-5) {
				t.Errorf("%v, want %v", got, want)
			}
		}
		if _, err := e.Encode(t.Context(), nil, "encoding"); err == nil {
			t.Error("no sentence is encoded")
		}
		if _, err := e.Encode(t.Context(), []string{"31", "555"}, "encoding"); err == nil ||
			!strings.Contains(err.Error(), `the vector of "555" has a number that is not finite`) {
			t.Errorf("%s: %v", feature, err)
		}
	}
}

// paraphrases are pairs of so many degrees between their sentences; those below 30 are equivalent.
func paraphrases(t *testing.T, between ...int) *sentencepairs.Set {
	t.Helper()
	task := check.Get(sentencepairs.TaskOf("mrpc"))(t)
	s := &sentencepairs.Set{Task: task}
	for i, d := range between {
		p := sentencepairs.Pair{A: strconv.Itoa(10 * i), B: strconv.Itoa(10*i + d)}
		if d < 30 {
			p.Label = 1
		}
		s.Pairs = append(s.Pairs, p)
	}
	return s
}

// TestSentencesRules: fixed thresholds see what is above a half, tuned ones what the training pairs show.
func TestSentencesRules(t *testing.T) {
	e, _ := angleEncoder(sentences.ClassFeature)
	s := sentences.Sentences{Encoder: e, Rules: []string{sentences.FixedRule, sentences.TunedRule, sentences.KMeansRule, sentences.ProbeRule}, Isotropy: 100, Pictured: 2, Classifier: probe.Classifier{Engine: engine, Decay: 1e-3},
		Tasks: sentences.Tasks{{Test: paraphrases(t, 10, 20, 40, 50, 25, 80), Train: paraphrases(t, 5, 12, 20, 28, 35, 45, 70, 90), Split: "val", Files: "dev.tsv"}}}
	out, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := out.Tasks[0]
	// cos 40 and cos 50 are above 1/2 too; the clusters are 10, 20, 25, 40, 50 and 80.
	if r.Rules[sentences.FixedRule] != 100*4/6. || r.Rules[sentences.TunedRule] != 100 || r.Rules[sentences.KMeansRule] != 100*4/6. || r.Rules[sentences.ProbeRule] < 50 {
		t.Errorf("%v", r.Rules)
	}
	if class, share := r.Majority(); class != "not_equivalent" || share != 50 ||
		!slices.Equal(r.Constant, []float64{50, 50}) || r.Nearest != 1 {
		t.Errorf("%s %g %+v", class, share, r)
	}
	if len(r.Thresholds) != 1 || !(math.Abs(r.Thresholds[0]-(math.Cos(28*math.Pi/180)+
		math.Cos(35*math.Pi/180))/2) <= 1e-6) {
		t.Errorf("%v", r.Thresholds)
	}
	if r.Pairs != 6 || r.Train != 8 || r.Split != "val" || r.STS != nil || r.Skipped != "" {
		t.Errorf("%+v", r)
	}
	if i := r.Isotropy; i == nil || i.Positives != 3 || i.Width != 2 ||
		!(math.Abs(i.Alignment-(2-2*(math.Cos(10*math.Pi/180)+math.Cos(20*math.Pi/180)+
			math.Cos(25*math.Pi/180))/3)) <= 1e-6) {
		t.Errorf("%+v", i)
	}
	if p := out.Picture; len(p.Pairs) != 2 || len(p.First) != 4 || len(p.Second) != 4 || len(p.Cosines) != 6 ||
		p.Labels[2] != 0 {
		t.Errorf("%+v", p)
	}
	s.Tasks[0].Train, s.Isotropy, s.Pictured = nil, 0, 0
	s.Tasks[0].Test.Thin(3)
	out = check.Get(s.Run(t.Context()))(t)
	if r := out.Tasks[0]; r.Pairs != 3 || len(r.Rules) != 2 || !strings.Contains(r.Skipped, "no training pairs") ||
		r.Isotropy != nil || out.Picture != nil {
		t.Errorf("%+v", out)
	}
	s.Rules = []string{sentences.FixedRule}
	if out, err = s.Run(t.Context()); err != nil || out.Tasks[0].Skipped != "" {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestSentencesScored: cosines of pairs that are ranked as people rank them correlate fully, in each part.
func TestSentencesScored(t *testing.T) {
	task := check.Get(sentencepairs.TaskOf("sts12"))(t)
	set := &sentencepairs.Set{Task: task, Parts: []sentencepairs.Part{{Name: "a", First: 0, Last: 3}, {Name: "b", First: 3, Last: 6}}}
	for i, d := range []int{0, 40, 80, 10, 60, 50} {
		set.Pairs = append(set.Pairs, sentencepairs.Pair{A: strconv.Itoa(i), B: strconv.Itoa(i + d),
			Label: data.UnknownLabel, Score: []float64{5, 3, 1, 4.5, 0, 1}[i]})
	}
	e, _ := angleEncoder(sentences.ClassFeature)
	out, err := sentences.Sentences{Encoder: e, Tasks: sentences.Tasks{{Test: set}}, Rules: []string{sentences.FixedRule, sentences.TunedRule}, Isotropy: 12}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := out.Tasks[0]
	if r.STS == nil || len(r.STS.Parts) != 2 || !(math.Abs(r.STS.Parts[0].Spearman-1) <= 1e-12) ||
		!(math.Abs(r.STS.Parts[1].Spearman-1) <= 1e-12) || r.STS.All.Spearman > .99 || r.STS.All.Pearson < .8 ||
		r.Pairs != 6 || r.Rules != nil || r.Skipped != "" {
		t.Errorf("%+v %+v", r, r.STS)
	}
	if r.Isotropy.Positives != 2 { // scores above 4
		t.Errorf("%+v", r.Isotropy)
	}
	set.Pairs[0].A = "666"
	if _, err := (sentences.Sentences{Encoder: e, Tasks: sentences.Tasks{{Test: set}}}).Run(t.Context()); !errors.Is(err, errFake) || !strings.Contains(err.Error(), "sts12") {
		t.Error(err)
	}
}

// TestSentiment: a linear layer finds what words and sounds say of a sentiment, each a half of it.
func TestSentiment(t *testing.T) {
	part := func(n, step int) sentiment.Part {
		p := sentiment.Part{Set: &utterances.Set{Pooled: map[string][]float32{}, Width: map[string]int{"audio": 1}}}
		for i := range n {
			degrees, sound := (i*step)%90, float64(i%7)/3-1
			p.Sentences = append(p.Sentences, strconv.Itoa(degrees))
			p.Set.Pooled["audio"] = append(p.Set.Pooled["audio"], float32(sound))
			p.Set.Labels = append(p.Set.Labels, 2*math.Sin(float64(degrees)*math.Pi/180)+sound-1)
		}
		return p
	}
	e, read := angleEncoder(sentences.ClassFeature)
	task := sentiment.Sentiment{Encoder: e, Train: part(80, 7), Test: part(30, 11), Modalities: []string{"audio"}, Penalty: 1e-6}
	s, err := task.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.MAE > 1e-3 || s.Pearson < .999 || s.Accuracy7 < 90 || s.Accuracy2 != 100 || s.Width != 3 || s.Train != 80 ||
		s.Rows != 30 || s.Constant.MAE < .5 || s.Constant.Pearson != 0 || *read != 110 {
		t.Errorf("%+v, %d sentences", s, *read)
	}
	if s.Emotions != nil {
		t.Errorf("emotions of files without: %+v", s.Emotions)
	}
	for _, p := range []*sentiment.Part{&task.Train, &task.Test} { // the first where a sound is high, which a line tells nearly, the others nowhere
		p.Set.Emotions = make([][]float64, len(utterances.Emotions))
		for k := range p.Set.Emotions {
			for _, sound := range p.Set.Pooled["audio"] {
				strength := 0.0
				if k == 0 && sound > 0.3 {
					strength = 2
				}
				p.Set.Emotions[k] = append(p.Set.Emotions[k], strength)
			}
		}
	}
	if s, err = task.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := s.Emotions[0]; e.WeightedAccuracy < 85 || e.F1 < 85 || e.Share < 30 || e.Share > 60 {
		t.Errorf("an emotion that is heard: %+v", e)
	}
	if e := s.Emotions[1]; e != (eval.Emotion{WeightedAccuracy: 100, F1: 100}) {
		t.Errorf("one that nobody has: %+v", e)
	}
	if v := s.Values()["happiness/weighted_accuracy"]; v != s.Emotions[0].WeightedAccuracy {
		t.Errorf("logged as %v", v)
	}
	if text := s.Table(); !strings.Contains(text, "weighted accuracy %") || !strings.Contains(text, "\nfear ") {
		t.Error(text)
	}
	task.Train.Sentences, task.Test.Sentences = nil, nil
	if s, err = task.Run(t.Context()); err != nil || s.Width != 1 || s.MAE < .1 {
		t.Errorf("%+v, %v", s, err)
	}
	task.Test.Sentences = []string{"1"}
	if _, err = task.Run(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "1 sentences of 30 test utterances") {
		t.Error(err)
	}
	task.Test = part(30, 11)
	if _, err = task.Run(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "training utterances have 1 features and test utterances 3") {
		t.Error(err)
	}
	task.Train.Set.Pooled, task.Modalities = nil, nil
	if _, err = task.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "have no features") {
		t.Error(err)
	}
}
