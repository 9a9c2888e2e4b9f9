package captioning

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// Score is how good captions are.
type Score struct {
	Bleu  [4]float64 // BLEU-1 to BLEU-4, in percent
	Cider float64    // CIDEr-D, in percent
}

// Scores are the outcome.
type Scores struct {
	Set  *data.Eval
	Heat *tasks.Heat // of its page, nil without

	Images, References int
	Written            Score
	Copied             *Score    // of Nearest, nil without
	Generated          []string  // caption of each image
	Each               []float64 // CIDEr-D of each, in percent
	From               int       // training images of Nearest
}

// Task implements tasks.Scores.
func (s Scores) Task() string { return Name }

// Metric is CIDEr-D in percent.
func (s Scores) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: tasks.Logged(Name, "cider"), Value: s.Written.Cider}
}

// Values implements tasks.Scores: in percent.
func (s Scores) Values() map[string]float64 {
	v := map[string]float64{}
	add := func(prefix string, x Score) {
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

// Line implements tasks.Scores.
func (s Scores) Line() string {
	line := fmt.Sprintf("captions BLEU-4 %.2f, CIDEr %.2f", s.Written.Bleu[3], s.Written.Cider)
	if s.Copied != nil {
		line += fmt.Sprintf(" (of the nearest training image %.2f and %.2f)", s.Copied.Bleu[3], s.Copied.Cider)
	}
	return line
}

// Size implements tasks.Scores.
func (s Scores) Size() string {
	return fmt.Sprintf("%s, %s", words.Count(s.Images, "image"), words.Count(s.References, "caption"))
}

// JSON implements tasks.Scores.
func (s Scores) JSON(split, path string) any {
	return struct {
		Task     string             `json:"task"`
		Split    string             `json:"split"`
		Path     string             `json:"path"`
		Images   int                `json:"images"`
		Captions int                `json:"captions"` // of people
		Nearest  int                `json:"nearest,omitempty"`
		Values   map[string]float64 `json:"values"`
		Metric   string             `json:"metric"`
	}{Name, split, path, s.Images, s.References, s.From, s.Values(), s.Metric().Name}
}

// Table implements tasks.Scores.
func (s Scores) Table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-30s %8s %8s %8s %8s %8s\n", "captions", "BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "CIDEr")
	row := func(name string, x Score) {
		fmt.Fprintf(&b, "%-30s %8.2f %8.2f %8.2f %8.2f %8.2f\n", name, x.Bleu[0], x.Bleu[1], x.Bleu[2], x.Bleu[3],
			x.Cider)
	}
	row("written", s.Written)
	if s.Copied != nil {
		row("of the nearest training image", *s.Copied)
	}
	b.WriteString("\n")
	for i, generated := range s.Generated[:min(5, len(s.Generated))] {
		fmt.Fprintf(&b, "%s: %s (CIDEr %.0f)\n", s.Set.ImageName(i), generated, s.Each[i])
	}
	return b.String()
}

// WriteResults implements tasks.Resulted: the list of {"image_id", "caption"} of COCO's captions.
func (s Scores) WriteResults(w io.Writer) error {
	type caption struct {
		Image   int64  `json:"image_id"`
		Caption string `json:"caption"`
	}
	list := make([]caption, len(s.Generated))
	for i, generated := range s.Generated {
		list[i] = caption{s.Set.ImageID(i), generated}
	}
	return json.NewEncoder(w).Encode(list)
}
