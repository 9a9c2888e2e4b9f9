package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/tasks/retrieval"
)

// EvaluateWith evaluates retrieval by the mean of the scores that t and other models give the
// pairs of a split, with equal weights; empty is eval.split. All must see the same images and
// texts in the same order. Folds and sizes are those of t.
func (t *Trained) EvaluateWith(ctx context.Context, others []*Trained, split string,
	progress func(phase string, done, total int)) (Scores, error) {
	if t.Config.Eval.RerankTop > 0 {
		return nil, console.Argument("eval.rerank_top = %d re-ranks by one model: set it to 0 to average the scores "+
			"of several", t.Config.Eval.RerankTop)
	}
	all := append([]*Trained{t}, others...)
	var list []Evaluation
	for _, x := range all {
		if x.Config.Has(section.ImagesAlone) {
			return nil, console.Argument("%s: scores of pairs need a model of images and texts, and model.system %q "+
				"has no text tower", x.Checkpoint.Path, x.Config.Model.System)
		}
		if x.Config.Has(section.Sentences) {
			return nil, console.Argument("%s: scores of pairs need a model of images and texts, and model.system %q "+
				"has no images", x.Checkpoint.Path, x.Config.Model.System)
		}
		set, err := x.Split(ctx, t.SplitName(split), progress)
		if err != nil {
			return nil, err
		}
		if err := set.findFiles(ctx, x.Config, t.SplitName(split), progress); err != nil {
			return nil, err
		}
		if len(list) > 0 {
			if err := sameGalleries(list[0].Set, set); err != nil {
				return nil, console.Argument("%s and %s have other splits %q: %w: evaluate both on the same data, by "+
					"--config or --set", t.Checkpoint.Path, x.Checkpoint.Path, t.SplitName(split), err)
			}
		}
		if err := x.LoadForSplit(); err != nil {
			return nil, err
		}
		list = append(list, Evaluation{Task: retrieval.Name, Config: x.Config, Engine: x.Engine, Model: x.Model,
			Tokenizer: x.Tokenizer, Set: set, Group: x.Group, Progress: progress, Say: t.Say})
	}
	list[0].With = list[1:]
	t.evaluated = list[0].Set
	return Evaluate(ctx, list[0])
}

// sameGalleries says in what two splits differ: images, which text is of which image, or
// words. Stored features have rows of a file instead of words.
func sameGalleries(a, b *Split) error {
	if a.Len() != b.Len() {
		return fmt.Errorf("%d and %d images", a.Len(), b.Len())
	}
	for i := range a.Len() {
		if a.ImageID(i) != b.ImageID(i) {
			return fmt.Errorf("image %d has the ids %d and %d", i, a.ImageID(i), b.ImageID(i))
		}
	}
	switch {
	case a.Eval != nil && b.Eval != nil:
		text := func(x *data.Eval) func(j int) string {
			return func(j int) string { return fmt.Sprintf("%q of image %d", x.Text(j), x.TextImage(j)) }
		}
		return sameTexts(a.Eval.NumTexts(), b.Eval.NumTexts(), text(a.Eval), text(b.Eval))
	case a.Eval != nil || b.Eval != nil:
		return errors.New("one is of stored features and the other of images")
	}
	x, ok := a.Galleries.(*features.Set)
	y, also := b.Galleries.(*features.Set)
	if !ok || !also {
		return errors.New("their texts cannot be compared")
	}
	row := func(x *features.Set) func(j int) string {
		return func(j int) string { return fmt.Sprintf("row %d of image %d", x.TextRow(j), x.TextImage(j)) }
	}
	return sameTexts(x.NumTexts(), y.NumTexts(), row(x), row(y))
}

// sameTexts says in which of n and m texts, each named with its image, two splits differ.
func sameTexts(n, m int, a, b func(j int) string) error {
	if n != m {
		return fmt.Errorf("%d and %d texts", n, m)
	}
	for j := range n {
		if x, y := a(j), b(j); x != y {
			return fmt.Errorf("text %d is %s and %s", j, x, y)
		}
	}
	return nil
}
