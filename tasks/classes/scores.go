package classes

import (
	"encoding/csv"
	"fmt"
	"io"

	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/multimodal"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// Scores are the outcome of a model on images with classes.
type Scores struct {
	multimodal.Scores
	Top5 float64 // percentage of the images whose class is among the best five
}

// Metric is the accuracy in percent.
func (s Scores) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: tasks.Logged(Name, "top1"), Value: s.Accuracy}
}

// Values implements tasks.Scores: in percent.
func (s Scores) Values() map[string]float64 {
	return map[string]float64{"top1": s.Accuracy, "top5": s.Top5, "class_top1": s.PerClass.MeanOfClasses(),
		"majority": s.Majority}
}

// Line implements tasks.Scores.
func (s Scores) Line() string {
	return fmt.Sprintf("classification top-1 %.2f, top-5 %.2f, mean of classes %.2f, majority %.2f",
		s.Accuracy, s.Top5, s.PerClass.MeanOfClasses(), s.Majority)
}

// Size implements tasks.Scores.
func (s Scores) Size() string {
	return fmt.Sprintf("%s, %d classes", words.Count(s.Examples, "image"), len(s.Samples.Labels()))
}

// Table implements tasks.Scores.
func (s Scores) Table() string {
	text := fmt.Sprintf("%-24s  %6s  %6s\n%-24s  %6.2f  %6.2f\n%-24s  %6.2f\n%-24s  %6.2f\n", "accuracy", "top-1",
		"top-5", "all images %", s.Accuracy, s.Top5, "mean of classes %", s.PerClass.MeanOfClasses(),
		"commonest class %", s.Majority)
	if s.Unknown > 0 {
		text += fmt.Sprintf("%d images of no class are left out.\n", s.Unknown)
	}
	return text + "\n" + s.PerClass.Table()
}

// JSON implements tasks.Scores.
func (s Scores) JSON(split, path string) any {
	t := s.PerClass
	return struct {
		Task       string  `json:"task"`
		Split      string  `json:"split"`
		Path       string  `json:"path"`
		Images     int     `json:"images"`
		Unlabelled int     `json:"unlabelled,omitempty"` // images of no class, left out
		Classes    int     `json:"classes"`
		Top1       float64 `json:"top1"`
		Top5       float64 `json:"top5"`
		ClassTop1  float64 `json:"class_top1"`
		Majority   float64 `json:"majority"`
		tasks.ClassJSON
	}{Name, split, path, t.All(), s.Unknown, len(t.Names), s.Accuracy, s.Top5, t.MeanOfClasses(), s.Majority,
		tasks.NewClassJSON(t)}
}

// WriteResults implements tasks.Resulted: a table of images and the classes that they are taken for, as CSV.
func (s Scores) WriteResults(w io.Writer) error {
	rows := [][]string{{"image", "class"}}
	for i, k := range s.Predicted {
		rows = append(rows, []string{s.Samples.PictureName(i, 0), s.Samples.Labels()[k]})
	}
	return csv.NewWriter(w).WriteAll(rows)
}
