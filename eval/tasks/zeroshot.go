package tasks

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives/scoring"
)

// ZeroShot classifies images by texts that name their classes, its prompts, and compares images with
// them by the pair score. A class is the mean of its prompts in the shared space, brought back to the
// spheres of the space (Radford et al. 2021, section 3.1.4; GeRA, section 5), or with AverageScores its score is the
// mean of those of its prompts (clip-mtob, section 4).
//
// With N images, P prompts, K classes and C channels it keeps 4 bytes x (N or BatchSize + P)*C, and the
// scores of a batch: 4 bytes x BatchSize*K, with AverageScores BatchSize*(P+K).
type ZeroShot struct {
	Image, Text     Encoder
	Score           scoring.Score
	AverageScores   bool
	Images, Prompts data.Gallery
	ImageClass      []int32  // N, below the number of classes; images of data.UnknownLabel are left out
	PromptClass     []int32  // P; every class has a prompt
	Classes         []string // names
	Engine          *kernel.Engine
	BatchSize       int            // rows encoded at a time, at least 1
	Workers         int            // goroutines that read rows; 0: 1
	Group           parallel.Group // processes that encode together, see Encoding; nil: this one alone
	// Progress is told how much of a phase is done; may be nil.
	Progress func(phase string, done, total int)
}

// ZeroShotScores are percentages of the images whose class is the first, or among the first five.
type ZeroShotScores struct {
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

// Map names the scores for logs.
func (s ZeroShotScores) Map() map[string]float64 {
	return map[string]float64{"top1": s.Top1, "top5": s.Top5, "class_top1": s.MeanOfClasses1, "chance": s.Chance1}
}

// Table formats the scores for people.
func (s ZeroShotScores) Table() string {
	text := fmt.Sprintf("%-24s  %6s  %6s\n%-24s  %6.2f  %6.2f\n%-24s  %6.2f\n%-24s  %6.2f  %6.2f\n",
		"zero-shot accuracy", "top-1", "top-5", "all images %", s.Top1, s.Top5, "mean of classes %", s.MeanOfClasses1,
		"chance %", s.Chance1, s.Chance5)
	if s.Unlabelled > 0 {
		text += fmt.Sprintf("%d images of no class are left out.\n", s.Unlabelled)
	}
	return text + "\n" + s.PerClass.Table()
}

// Run encodes images and prompts, and classifies. It ends early with the error of ctx. Scores of NaN are an
// *eval.NonFiniteError.
func (z ZeroShot) Run(ctx context.Context) (ZeroShotScores, error) {
	n, p, classes := z.Images.Len(), z.Prompts.Len(), len(z.Classes)
	s := ZeroShotScores{Prompts: p, Classes: classes}
	if len(z.ImageClass) != n || len(z.PromptClass) != p || n == 0 || classes == 0 {
		return s, fmt.Errorf("tasks: zero-shot classification needs a class for each of %d images and %d prompts (got %d and %d, of %d classes)", n, p, len(z.ImageClass), len(z.PromptClass), classes)
	}
	images, labels := known(z.Images, func(i int) int32 { return z.ImageClass[i] })
	if len(labels) == 0 {
		return s, fmt.Errorf("tasks: zero-shot classification: none of %d images has a class", n)
	}
	s.Images, s.Unlabelled = len(labels), n-len(labels)
	e := Encoding{BatchSize: z.BatchSize, Workers: z.Workers, Group: z.Group, Progress: z.Progress}
	prompts, err := e.Features(ctx, z.Text, z.Prompts, "encoding prompts")
	if err != nil {
		return s, err
	}
	scorer, err := z.scorer(prompts, min(z.BatchSize, s.Images))
	if err != nil {
		return s, err
	}
	s.PerClass = eval.NewClassTable(z.Classes)
	right5, first := 0, 0
	scores := make([]float32, min(z.BatchSize, s.Images)*classes)
	err = e.Run(ctx, z.Image, images, "encoding images", func(x Encoded) error {
		if err := scorer(x, scores[:x.Rows*classes]); err != nil {
			return err
		}
		for i := range x.Rows {
			own, row := labels[first+i], scores[i*classes:][:classes]
			if _, err := eval.Likeliest(row); err != nil {
				return fmt.Errorf("tasks: image %d of those with a class: %w", first+i, err)
			}
			if eval.ClassRank(row, own) < 5 {
				right5++
			}
			s.PerClass.Add(own, eval.TakenFor(row, own))
		}
		first += x.Rows
		return nil
	})
	if err != nil {
		return s, err
	}
	s.Top1, s.MeanOfClasses1 = s.PerClass.Top1(), s.PerClass.MeanOfClasses()
	s.Top5 = 100 * float64(right5) / float64(s.Images)
	s.Chance1, s.Chance5 = 100/float64(classes), 100*float64(min(5, classes))/float64(classes)
	return s, nil
}

// scorer returns what sets the scores (k, K) of the k images of a batch, at most rows.
func (z ZeroShot) scorer(prompts []float32, rows int) (func(x Encoded, dst []float32) error, error) {
	if !z.AverageScores {
		vectors, err := eval.ClassMeans(prompts, z.PromptClass, z.Classes, z.Score.Space)
		return func(x Encoded, dst []float32) error {
			return z.Score.Rows(z.Engine, x.Features, x.Rows, vectors, len(z.Classes), dst)
		}, err
	}
	p := len(z.PromptClass)
	all := make([]float32, rows*p)
	return func(x Encoded, dst []float32) error {
		if err := z.Score.Rows(z.Engine, x.Features, x.Rows, prompts, p, all[:x.Rows*p]); err != nil {
			return err
		}
		return eval.ClassMeanScores(all[:x.Rows*p], z.PromptClass, z.Classes, dst)
	}, nil
}

// known returns the rows of a gallery whose class is known, with their classes.
func known(g data.Gallery, label func(i int) int32) (data.Gallery, []int32) {
	some := Some{Gallery: g}
	var labels []int32
	for i := range g.Len() {
		if l := label(i); l != data.UnknownLabel {
			some.Rows, labels = append(some.Rows, i), append(labels, l)
		}
	}
	if len(labels) == g.Len() {
		return g, labels
	}
	return some, labels
}
