package tasks

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives/scoring"
)

// ZeroShot classifies images by texts that name their classes. A class is the mean of its
// prompts in the shared space, brought to unit length (GeRA, section 5), and images are compared
// with the classes by the pair score.
//
// With N images, P prompts and C channels it keeps 4 bytes x (N+P)*C.
type ZeroShot struct {
	Image, Text     Encoder
	Score           scoring.Score
	Images, Prompts data.Gallery
	ImageClass      []int32  // N, below the number of classes
	PromptClass     []int32  // P; every class has a prompt
	Classes         []string // names
	Engine          *kernel.Engine
	BatchSize       int // rows encoded at a time, at least 1
	Workers         int // goroutines that read rows; 0: 1
	// Progress is told how much of a phase is done; may be nil.
	Progress func(phase string, done, total int)
}

// ZeroShotScores are percentages of the images whose class is the first, or among the first five.
type ZeroShotScores struct {
	Top1, Top5     float64
	Chance1        float64 // by guessing
	Chance5        float64
	Images         int
	Prompts        int
	Classes        int
	MeanOfClasses1 float64 // Top1 of each class, mean over the classes that have images
}

// Map names the scores for logs.
func (s ZeroShotScores) Map() map[string]float64 {
	return map[string]float64{"top1": s.Top1, "top5": s.Top5, "class_top1": s.MeanOfClasses1, "chance": s.Chance1}
}

// Table formats the scores for people.
func (s ZeroShotScores) Table() string {
	return fmt.Sprintf("%-24s  %6s  %6s\n%-24s  %6.2f  %6.2f\n%-24s  %6.2f\n%-24s  %6.2f  %6.2f\n", "zero-shot accuracy", "top-1", "top-5",
		"all images %", s.Top1, s.Top5, "mean of classes %", s.MeanOfClasses1, "chance %", s.Chance1, s.Chance5)
}

// Run encodes images and prompts, and classifies. It ends early with the error of ctx.
func (z ZeroShot) Run(ctx context.Context) (ZeroShotScores, error) {
	n, p, classes := z.Images.Len(), z.Prompts.Len(), len(z.Classes)
	s := ZeroShotScores{Images: n, Prompts: p, Classes: classes}
	if len(z.ImageClass) != n || len(z.PromptClass) != p || n == 0 || classes == 0 {
		return s, fmt.Errorf("tasks: zero-shot classification needs a class for each of %d images and %d prompts (got %d and %d, of %d classes)", n, p, len(z.ImageClass), len(z.PromptClass), classes)
	}
	e := Encoding{BatchSize: z.BatchSize, Workers: z.Workers, Progress: z.Progress}
	prompts, err := e.Features(ctx, z.Text, z.Prompts, "encoding prompts")
	if err != nil {
		return s, err
	}
	vectors, err := eval.ClassMeans(prompts, z.PromptClass, z.Classes)
	if err != nil {
		return s, err
	}
	right1, seen := make([]int, classes), make([]int, classes)
	right5, first := 0, 0
	scores := make([]float32, min(z.BatchSize, n)*classes)
	err = e.Run(ctx, z.Image, z.Images, "encoding images", func(x Encoded) error {
		if err := z.Score.Rows(z.Engine, x.Features, x.Rows, vectors, classes, scores[:x.Rows*classes]); err != nil {
			return err
		}
		for i := range x.Rows {
			own := z.ImageClass[first+i]
			seen[own]++
			switch rank := eval.ClassRank(scores[i*classes:][:classes], own); {
			case rank == 0:
				right1[own]++
				right5++
			case rank < 5:
				right5++
			}
		}
		first += x.Rows
		return nil
	})
	if err != nil {
		return s, err
	}
	known := 0
	for c, m := range seen {
		s.Top1 += 100 * float64(right1[c]) / float64(n)
		if m > 0 {
			known++
			s.MeanOfClasses1 += 100 * float64(right1[c]) / float64(m)
		}
	}
	s.MeanOfClasses1 /= float64(known)
	s.Top5 = 100 * float64(right5) / float64(n)
	s.Chance1, s.Chance5 = 100/float64(classes), 100*float64(min(5, classes))/float64(classes)
	return s, nil
}
