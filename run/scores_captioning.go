package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/eval/tasks"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// captioned has a model that was fine-tuned to write captions write those of the images of the split.
func (e Evaluation) captioned(ctx context.Context) (Scores, error) {
	c := e.Config
	m := decoder(e.Model)
	if m == nil || c.Task() != TaskCaptioning {
		return nil, &ArgumentError{fmt.Errorf("the task %s needs a model that was fine-tuned for it (trainer finetune --task %s): use --task %s here", TaskCaptioning, TaskCaptioning, DefaultTask(c))}
	}
	set, err := e.Set.Eval.Rephrased()
	if err != nil {
		return nil, err
	}
	w := c.Eval.Captioning
	t := tasks.Captioned{Columns: m.Columns(), Set: set, Encoding: e.encoding(), Nearest: tasks.Nearest{Model: e.Model.Image(), Engine: e.Engine, Samples: w.Nearest}}
	if w.Nearest > 0 {
		asWritten := unaugmented(c)
		asWritten.Data.Clean = data.CleanNone
		if t.Nearest.Train, err = source.Stream(ctx, asWritten.Source(), source.Options{Progress: e.Progress}); err != nil {
			return nil, err
		}
	}
	o := model.GenerateOptions{Beams: w.Beams, MinTokens: w.MinTokens, MaxTokens: w.Most(c.Data), LengthPenalty: w.LengthPenalty}
	t.Write = func(ctx context.Context, b *batch.Batch) ([]string, error) {
		ids, err := m.Generate(ctx, b, o)
		if err != nil {
			return nil, err
		}
		said := make([]string, len(ids))
		for i, text := range ids {
			said[i] = e.Tokenizer.Decode(text)
		}
		return said, nil
	}
	s, err := t.Run(ctx)
	as := data.Answers{Tokens: o.MaxTokens + 1, Clean: data.CleanNone} // with the token that begins a text
	return Captioned{s, set, e.writtenHeat(s.Said, as, set.Images())}, err
}

// Captioned is the outcome of a model that writes captions.
type Captioned struct {
	tasks.CaptionedScores
	Set  *data.Eval
	Heat *seenHeat // of its pages, nil without
}

// Task implements Scores.
func (s Captioned) Task() string { return TaskCaptioning }

// Metric is CIDEr-D in percent.
func (s Captioned) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: logPrefix(TaskCaptioning) + "cider", Value: s.Written.Cider}
}

// Values implements Scores: in percent.
func (s Captioned) Values() map[string]float64 {
	v := map[string]float64{}
	add := func(prefix string, x tasks.CaptionScore) {
		for k, bleu := range x.Bleu {
			v[fmt.Sprintf("%sbleu%d", prefix, k+1)] = bleu
		}
		v[prefix+"cider"] = x.Cider
	}
	add("", s.Written)
	if s.Copied != nil {
		add("nearest/", *s.Copied)
	}
	return v
}

// Line implements Scores.
func (s Captioned) Line() string {
	line := fmt.Sprintf("captions BLEU-4 %.2f, CIDEr %.2f", s.Written.Bleu[3], s.Written.Cider)
	if s.Copied != nil {
		line += fmt.Sprintf(" (of the nearest training image %.2f and %.2f)", s.Copied.Bleu[3], s.Copied.Cider)
	}
	return line
}

// Size implements Scores.
func (s Captioned) Size() string {
	return fmt.Sprintf("%s, %s", words.Count(s.Images, "image"), words.Count(s.References, "caption"))
}

// JSON implements Scores.
func (s Captioned) JSON(split, path string) any {
	return struct {
		Task     string             `json:"task"`
		Split    string             `json:"split"`
		Path     string             `json:"path"`
		Images   int                `json:"images"`
		Captions int                `json:"captions"` // of people
		Nearest  int                `json:"nearest,omitempty"`
		Values   map[string]float64 `json:"values"`
		Metric   string             `json:"metric"`
	}{TaskCaptioning, split, path, s.Images, s.References, s.From, s.Values(), s.Metric().Name}
}

// Table implements Scores.
func (s Captioned) Table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-30s %8s %8s %8s %8s %8s\n", "captions", "BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "CIDEr")
	row := func(name string, x tasks.CaptionScore) {
		fmt.Fprintf(&b, "%-30s %8.2f %8.2f %8.2f %8.2f %8.2f\n", name, x.Bleu[0], x.Bleu[1], x.Bleu[2], x.Bleu[3], x.Cider)
	}
	row("written", s.Written)
	if s.Copied != nil {
		row("of the nearest training image", *s.Copied)
	}
	b.WriteString("\n")
	for i, said := range s.Said[:min(5, len(s.Said))] {
		fmt.Fprintf(&b, "%s: %s (CIDEr %.0f)\n", s.Set.ImageName(i), said, s.Each[i])
	}
	return b.String()
}

// WriteResults implements Resulted: the list of {"image_id", "caption"} of COCO's captions.
func (s Captioned) WriteResults(w io.Writer) error {
	type caption struct {
		Image   int64  `json:"image_id"`
		Caption string `json:"caption"`
	}
	list := make([]caption, len(s.Said))
	for i, said := range s.Said {
		list[i] = caption{s.Set.ImageID(i), said}
	}
	return json.NewEncoder(w).Encode(list)
}
