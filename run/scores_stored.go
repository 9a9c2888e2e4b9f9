package run

import (
	"context"
	"fmt"
	"runtime"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/eval/tasks"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// tasksBeside lists the tasks that a run is evaluated on beside its own, without influence on
// which checkpoints are kept.
func tasksBeside(cfg config.Config, set *Split) (list []string) {
	if !cfg.Model.Stored() {
		return nil
	}
	if set.Len() > eval.PreservedNeighbours {
		list = append(list, TaskNeighbours)
	}
	if cfg.Eval.ZeroShot.Image != "" {
		list = append(list, TaskZeroShot)
	}
	return list
}

// needsStored refuses a task of stored features for another system.
func (e Evaluation) needsStored() error {
	if e.Config.Model.Stored() {
		return nil
	}
	return &ArgumentError{fmt.Errorf("the task %s needs stored features, which model.system %q does not read: use --task %s", e.Task, e.Config.Model.System, DefaultTask(e.Config))}
}

// neighbours runs the task of neighbourhoods.
func (e Evaluation) neighbours(ctx context.Context) (Scores, error) {
	if err := e.needsStored(); err != nil {
		return nil, err
	}
	texts, err := e.Set.Texts(nil)
	if err != nil {
		return nil, err
	}
	s, err := tasks.Neighbours{
		Image: e.Model.Image(), Text: e.Model.Text(), Images: e.Set.Images(), Texts: texts, Engine: e.Engine,
		BatchSize: e.Config.Eval.BatchSize, Workers: runtime.GOMAXPROCS(0), Progress: e.Progress,
	}.Run(ctx)
	return Neighbours{s}, err
}

// zeroShot runs zero-shot classification on the files of eval.zeroshot, whatever the split.
func (e Evaluation) zeroShot(ctx context.Context) (Scores, error) {
	if err := e.needsStored(); err != nil {
		return nil, err
	}
	z, err := source.OpenZeroShot(e.Config)
	if err != nil {
		return nil, err
	}
	if z == nil {
		return nil, config.Errors{{Path: "eval.zeroshot.image", Value: "", Msg: "must name features of images for --task " + TaskZeroShot, Hint: "docs/align.md says which files it needs"}}
	}
	defer z.Close()
	score, err := e.Model.PairScore()
	if err != nil {
		return nil, err
	}
	s, err := tasks.ZeroShot{
		Image: e.Model.Image(), Text: e.Model.Text(), Score: score, Images: z.Images, Prompts: z.Prompts, ImageClass: z.ImageClass, PromptClass: z.PromptClass,
		Classes: z.Classes, Engine: e.Engine, BatchSize: e.Config.Eval.BatchSize, Workers: runtime.GOMAXPROCS(0), Progress: e.Progress,
	}.Run(ctx)
	return ZeroShot{s}, err
}

// Neighbours is what an alignment keeps of the neighbourhoods of stored features.
type Neighbours struct{ tasks.NeighbourScores }

// Task implements Scores.
func (n Neighbours) Task() string { return TaskNeighbours }

// Metric is minus the mean rank of both sides.
func (n Neighbours) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: logPrefix(TaskNeighbours) + "rank", Value: -(n.Image + n.Text) / 2}
}

// Values implements Scores.
func (n Neighbours) Values() map[string]float64 { return n.Map() }

// Size implements Scores.
func (n Neighbours) Size() string { return fmt.Sprintf("%d images, %d texts", n.Images, n.Texts) }

// Line implements Scores.
func (n Neighbours) Line() string {
	return fmt.Sprintf("mean rank of the %d nearest stored neighbours: images %.1f, texts %.1f, kept %.1f, chance %.1f", eval.PreservedNeighbours, n.Image, n.Text, n.Best, n.Chance[0])
}

// JSON implements Scores.
func (n Neighbours) JSON(split, path string) any {
	return struct {
		Task        string  `json:"task"`
		Split       string  `json:"split"`
		Path        string  `json:"path"`
		Images      int     `json:"images"`
		Texts       int     `json:"texts"`
		Neighbours  int     `json:"neighbours"`
		ImageRank   float64 `json:"image_rank"`
		TextRank    float64 `json:"text_rank"`
		Kept        float64 `json:"kept_rank"`
		ImageChance float64 `json:"image_chance_rank"`
		TextChance  float64 `json:"text_chance_rank"`
	}{TaskNeighbours, split, path, n.Images, n.Texts, eval.PreservedNeighbours, n.Image, n.Text, n.Best, n.Chance[0], n.Chance[1]}
}

// ZeroShot is the outcome of zero-shot classification.
type ZeroShot struct{ tasks.ZeroShotScores }

// Task implements Scores.
func (z ZeroShot) Task() string { return TaskZeroShot }

// Metric is the accuracy of the first class.
func (z ZeroShot) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: logPrefix(TaskZeroShot) + "top1", Value: z.Top1}
}

// Values implements Scores.
func (z ZeroShot) Values() map[string]float64 { return z.Map() }

// Size implements Scores.
func (z ZeroShot) Size() string {
	return fmt.Sprintf("%d images, %d classes of %s", z.Images, z.Classes, words.Count(z.Prompts, "prompt"))
}

// Line implements Scores.
func (z ZeroShot) Line() string {
	return fmt.Sprintf("zero-shot top-1 %.2f, top-5 %.2f, mean of classes %.2f, chance %.2f", z.Top1, z.Top5, z.MeanOfClasses1, z.Chance1)
}

// JSON implements Scores.
func (z ZeroShot) JSON(split, path string) any {
	return struct {
		Task      string  `json:"task"`
		Split     string  `json:"split"`
		Path      string  `json:"path"`
		Images    int     `json:"images"`
		Prompts   int     `json:"prompts"`
		Classes   int     `json:"classes"`
		Top1      float64 `json:"top1"`
		Top5      float64 `json:"top5"`
		ClassTop1 float64 `json:"class_top1"`
		Chance    float64 `json:"chance"`
	}{TaskZeroShot, split, path, z.Images, z.Prompts, z.Classes, z.Top1, z.Top5, z.MeanOfClasses1, z.Chance1}
}
