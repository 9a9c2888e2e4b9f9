package probe

import (
	"fmt"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// Scores are percentages of the test rows that get their class.
type Scores struct {
	Top1          float64 // by the linear classifier
	MeanOfClasses float64 // mean over the classes of the accuracy of each
	Neighbours    float64 // by the vote of nearest neighbours
	Voted         bool    // there was a vote
	Chance        float64 // by the class that is commonest in training
	Decay         float64 // of the classifier
	Held          float64 // accuracy of the chosen decay on the rows that were held for it; 0 where none were
	Chosen        bool    // the decay was chosen
	Train         int     // labelled training rows used
	Test          int     // labelled test rows
	Classes       int
	PerClass      *eval.ClassTable // what the rows of each class were taken for
	OfTexts       bool             // of pairs of texts
}

// Task implements tasks.Scores.
func (s Scores) Task() string {
	if s.OfTexts {
		return TextName
	}
	return Name
}

// Metric is the accuracy of the linear classifier.
func (s Scores) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: tasks.Logged(s.Task(), "top1"), Value: s.Top1}
}

// Values implements tasks.Scores.
func (s Scores) Values() map[string]float64 {
	m := map[string]float64{"top1": s.Top1, "chance": s.Chance}
	if s.Voted {
		m["knn_top1"] = s.Neighbours
	}
	if s.Chosen {
		m["decay"] = s.Decay
	}
	return m
}

// Size implements tasks.Scores.
func (s Scores) Size() string {
	rows := "images"
	if s.OfTexts {
		rows = "text pairs"
	}
	return fmt.Sprintf("%d training %s, %d %s, %d classes", s.Train, rows, s.Test, rows, s.Classes)
}

// Line implements tasks.Scores.
func (s Scores) Line() string {
	text := fmt.Sprintf("linear probe top-1 %.2f, ", s.Top1)
	if s.Voted {
		text += fmt.Sprintf("k-NN top-1 %.2f, ", s.Neighbours)
	}
	return text + fmt.Sprintf("chance %.2f", s.Chance)
}

// Table implements tasks.Scores.
func (s Scores) Table() string {
	text := fmt.Sprintf("%-12s %6s\n%-12s %6.2f\n", "", "top-1", "linear", s.Top1)
	if s.Voted {
		text += fmt.Sprintf("%-12s %6.2f\n", "k-NN", s.Neighbours)
	}
	text += fmt.Sprintf("%-12s %6.2f\n", "chance", s.Chance)
	if s.Chosen {
		text += fmt.Sprintf("\nThe decay %.3g was chosen, with %.2f on the training rows held for that.\n", s.Decay,
			s.Held)
	}
	return text + "\n" + s.PerClass.Table()
}

// ClassTable implements tasks.Classified.
func (s Scores) ClassTable() *eval.ClassTable { return s.PerClass }

// Cautions implements tasks.Cautious.
func (s Scores) Cautions() []string {
	return tasks.AccuracyCautions(s.Top1, s.Chance, s.Test, "samples")
}

// JSON implements tasks.Scores.
func (s Scores) JSON(split, path string) any {
	x := struct {
		Task      string   `json:"task"`
		Split     string   `json:"split,omitempty"`
		Path      string   `json:"path"`
		Train     int      `json:"train"`
		Images    int      `json:"images,omitempty"`
		Pairs     int      `json:"pairs,omitempty"`
		Classes   int      `json:"classes"`
		Top1      float64  `json:"top1"`
		ClassTop1 float64  `json:"class_top1"`
		KNN       *float64 `json:"knn_top1,omitempty"`
		Chance    float64  `json:"chance"`
		Decay     float64  `json:"decay"`
		Held      *float64 `json:"held_top1,omitempty"` // on the training rows on which the decay was chosen
		tasks.ClassJSON
	}{Task: s.Task(), Path: path, Train: s.Train, Classes: s.Classes, Top1: s.Top1, ClassTop1: s.MeanOfClasses,
		Chance: s.Chance, Decay: s.Decay, ClassJSON: tasks.NewClassJSON(s.PerClass)}
	if s.Chosen {
		x.Held = &s.Held
	}
	if s.Voted {
		x.KNN = &s.Neighbours
	}
	if s.OfTexts {
		x.Pairs = s.Test
	} else {
		x.Split, x.Images = split, s.Test
	}
	return x
}
