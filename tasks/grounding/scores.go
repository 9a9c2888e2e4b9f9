package grounding

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// Scores are the outcome.
type Scores struct {
	Samples data.Examples
	From    tasks.HeatOf
	eval.Grounding
	Found   []Found // of every expression that counts, in order
	Without int     // expressions without a target, left out
	Outside int     // whose target lies outside of the picture, left out
	Clipped int     // whose target reaches out of the picture
	Sliding int     // which were looked for in sliding boxes, as their pictures have no others
}

// Task implements tasks.Scores.
func (Scores) Task() string { return Name }

// Metric is the share of right boxes in percent.
func (s Scores) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: tasks.Logged(Name, "accuracy"), Value: s.All.Accuracy()}
}

// Values implements tasks.Scores: in percent.
func (s Scores) Values() map[string]float64 {
	m := map[string]float64{}
	add := func(name string, g eval.GroundedGroup) {
		m["accuracy"+name], m["pointing"+name] = g.Accuracy(), g.Pointing()
	}
	add("", s.All)
	for _, k := range s.Kinds {
		add("/"+k.Kind, k)
	}
	return m
}

// where says which attention the maps are of, counted as the configuration does.
func (s Scores) where() string {
	if s.From.Match {
		return fmt.Sprintf("fusion layer %d", s.From.Layer+1)
	}
	return fmt.Sprintf("image block %d", s.From.Layer+1)
}

// Line implements tasks.Scores.
func (s Scores) Line() string {
	return fmt.Sprintf("grounding by %s: IoU >= .5 %.2f (chance %.2f), pointing %.2f (chance %.2f)", s.where(),
		s.All.Accuracy(), s.All.Chance(), s.All.Pointing(), s.All.ChancePoint())
}

// Size implements tasks.Scores.
func (s Scores) Size() string { return words.Count(s.All.N, "expression") }

// Table implements tasks.Scores.
func (s Scores) Table() string {
	var b strings.Builder
	b.WriteString("heat maps of " + s.where() + "\n\n")
	width := len("all")
	for _, k := range s.Kinds {
		width = max(width, len(k.Kind))
	}
	fmt.Fprintf(&b, "%-*s  %11s  %8s  %6s  %9s  %8s  %6s\n", width, "", "expressions", "IoU >= .5", "chance",
		"reachable", "pointing", "chance")
	row := func(name string, g eval.GroundedGroup) {
		fmt.Fprintf(&b, "%-*s  %11d  %9.2f  %6.2f  %9.2f  %8.2f  %6.2f\n", width, name, g.N, g.Accuracy(), g.Chance(),
			g.Reach(), g.Pointing(), g.ChancePoint())
	}
	row("all", s.All)
	for _, k := range s.Kinds {
		row(k.Kind, k)
	}
	for _, n := range []struct {
		n    int
		what string
	}{
		{s.All.Dark, "with a dark map, which count as wrong"}, {s.Sliding, "looked for in sliding boxes"}, {s.Clipped, "with a target that reaches out of the picture: clipped"},
		{s.Outside, "with a target outside of the picture: left out"}, {s.Without, "without a target: left out"},
	} {
		if n.n > 0 {
			fmt.Fprintf(&b, "%d %s\n", n.n, n.what)
		}
	}
	return b.String()
}

// JSON implements tasks.Scores.
func (s Scores) JSON(split, path string) any {
	type group struct {
		Kind        string  `json:"kind,omitempty"`
		Expressions int     `json:"expressions"`
		Accuracy    float64 `json:"accuracy"`
		Chance      float64 `json:"chance"`
		Reachable   float64 `json:"reachable"` // share with a right box among the proposals
		Pointing    float64 `json:"pointing"`
		ChancePoint float64 `json:"chance_pointing"`
		Dark        int     `json:"dark,omitempty"` // maps that say nothing
	}
	of := func(x eval.GroundedGroup) group {
		return group{x.Kind, x.N, x.Accuracy(), x.Chance(), x.Reach(), x.Pointing(), x.ChancePoint(), x.Dark}
	}
	var kinds []group
	for _, k := range s.Kinds {
		kinds = append(kinds, of(k))
	}
	return struct {
		Task    string  `json:"task"`
		Split   string  `json:"split"`
		Path    string  `json:"path"`
		Map     string  `json:"map"`
		All     group   `json:"all"`
		Kinds   []group `json:"kinds,omitempty"`
		Sliding int     `json:"sliding,omitempty"`
		Clipped int     `json:"clipped,omitempty"`
		Outside int     `json:"outside,omitempty"`
		Without int     `json:"without_target,omitempty"`
	}{Name, split, path, s.where(), of(s.All), kinds, s.Sliding, s.Clipped, s.Outside, s.Without}
}

// WriteResults implements tasks.Resulted: a list of {"id", "image", "text", "bbox", "target", "iou"} with boxes [x, y,
// width, height] in pixels; "bbox" is null of a dark map.
func (s Scores) WriteResults(w io.Writer) error {
	type result struct {
		ID     string      `json:"id"`
		Image  string      `json:"image"`
		Text   string      `json:"text"`
		Box    *[4]float64 `json:"bbox"`
		Target [4]float64  `json:"target"`
		IoU    float64     `json:"iou"`
	}
	box := func(r data.Rect) *[4]float64 { return &[4]float64{r.X, r.Y, r.W, r.H} }
	list := make([]result, len(s.Found))
	for i, f := range s.Found {
		e := s.Samples.Example(f.Example)
		list[i] = result{ID: e.ID, Image: s.Samples.PictureName(f.Example, 0), Text: e.Text, Target: *box(f.Target),
			IoU: f.IoU}
		if f.Chosen != nil {
			list[i].Box = box(*f.Chosen)
		}
	}
	return json.NewEncoder(w).Encode(list)
}
