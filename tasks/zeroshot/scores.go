package zeroshot

import (
	"fmt"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// Scores are percentages of the images whose class is the first, or among the first five.
type Scores struct {
	Top1, Top5     float64
	Chance1        float64 // by guessing
	Chance5        float64
	Images         int
	Unlabelled     int // images of no class, left out
	Prompts        int
	Classes        int
	MeanOfClasses1 float64          // Top1 of each class, mean over the classes that have images
	PerClass       *eval.ClassTable // what the images of each class were taken for
}

// Task implements tasks.Scores.
func (s Scores) Task() string { return Name }

// Metric is the accuracy of the first class.
func (s Scores) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: tasks.Logged(Name, "top1"), Value: s.Top1}
}

// Values implements tasks.Scores.
func (s Scores) Values() map[string]float64 {
	return map[string]float64{"top1": s.Top1, "top5": s.Top5, "class_top1": s.MeanOfClasses1, "chance": s.Chance1}
}

// Size implements tasks.Scores.
func (s Scores) Size() string {
	return fmt.Sprintf("%d images, %d classes of %s", s.Images, s.Classes, words.Count(s.Prompts, "prompt"))
}

// Line implements tasks.Scores.
func (s Scores) Line() string {
	return fmt.Sprintf("zero-shot top-1 %.2f, top-5 %.2f, mean of classes %.2f, chance %.2f", s.Top1, s.Top5,
		s.MeanOfClasses1, s.Chance1)
}

// Table implements tasks.Scores.
func (s Scores) Table() string {
	text := fmt.Sprintf("%-24s  %6s  %6s\n%-24s  %6.2f  %6.2f\n%-24s  %6.2f\n%-24s  %6.2f  %6.2f\n",
		"zero-shot accuracy", "top-1", "top-5", "all images %", s.Top1, s.Top5, "mean of classes %", s.MeanOfClasses1,
		"chance %", s.Chance1, s.Chance5)
	if s.Unlabelled > 0 {
		text += fmt.Sprintf("%d images of no class are left out.\n", s.Unlabelled)
	}
	return text + "\n" + s.PerClass.Table()
}

// ClassTable implements tasks.Classified.
func (s Scores) ClassTable() *eval.ClassTable { return s.PerClass }

// Cautions implements tasks.Cautious.
func (s Scores) Cautions() []string {
	return tasks.AccuracyCautions(s.Top1, s.Chance1, s.Images, "images")
}

// JSON implements tasks.Scores.
func (s Scores) JSON(split, path string) any {
	return struct {
		Task       string  `json:"task"`
		Split      string  `json:"split,omitempty"` // empty: of files of its own
		Path       string  `json:"path"`
		Images     int     `json:"images"`
		Unlabelled int     `json:"unlabelled,omitempty"` // images of no class, left out
		Prompts    int     `json:"prompts"`
		Classes    int     `json:"classes"`
		Top1       float64 `json:"top1"`
		Top5       float64 `json:"top5"`
		ClassTop1  float64 `json:"class_top1"`
		Chance     float64 `json:"chance"`
		tasks.ClassJSON
	}{Name, split, path, s.Images, s.Unlabelled, s.Prompts, s.Classes, s.Top1, s.Top5, s.MeanOfClasses1, s.Chance1,
		tasks.NewClassJSON(s.PerClass)}
}
