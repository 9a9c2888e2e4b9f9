package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/geoalign/geoalign/eval/tasks"
)

// member is the model as it scores the pairs of the split.
func (e Evaluation) member() (m tasks.Member, err error) {
	m = tasks.Member{Image: e.Model.Image(), Text: e.Model.Text(), Engine: e.Engine, Images: e.Set.Images()}
	if m.Texts, err = e.Set.Texts(textColumns(e.Config, e.Tokenizer)); err != nil {
		return m, err
	}
	if x, ok := e.Model.(tasks.Interaction); ok && x.InteractionName() != "" {
		m.Interaction = x
		return m, nil
	}
	m.Score, err = e.Model.PairScore()
	return m, err
}

// EvaluateWith evaluates retrieval by the mean of the scores that t and other models give the
// pairs of a split, with equal weights; empty is eval.split. All must see the same images and
// texts in the same order. Folds and sizes are those of t.
func (t *Trained) EvaluateWith(ctx context.Context, others []*Trained, split string, progress func(phase string, done, total int)) (Scores, error) {
	if t.Config.Eval.RerankTop > 0 {
		return nil, &ArgumentError{fmt.Errorf("eval.rerank_top = %d re-ranks by one model: set it to 0 to average the scores of several", t.Config.Eval.RerankTop)}
	}
	all := append([]*Trained{t}, others...)
	var list []Evaluation
	for _, x := range all {
		if x.Config.Model.ImagesOnly() {
			return nil, &ArgumentError{fmt.Errorf("%s: scores of pairs need a model of images and texts, and model.system %q has no text tower", x.Checkpoint.Path, x.Config.Model.System)}
		}
		if x.Config.Model.TextsOnly() {
			return nil, &ArgumentError{fmt.Errorf("%s: scores of pairs need a model of images and texts, and model.system %q has no images", x.Checkpoint.Path, x.Config.Model.System)}
		}
		set, err := x.Split(ctx, t.split(split), progress)
		if err != nil {
			return nil, err
		}
		if err := set.findFiles(ctx, t.split(split), progress); err != nil {
			return nil, err
		}
		if len(list) > 0 {
			if err := sameGalleries(list[0].Set, set); err != nil {
				return nil, &ArgumentError{fmt.Errorf("%s and %s have other splits %q: %w: evaluate both on the same data, by --config or --set", t.Checkpoint.Path, x.Checkpoint.Path, t.split(split), err)}
			}
		}
		if err := x.loadForSplit(); err != nil {
			return nil, err
		}
		list = append(list, Evaluation{Task: TaskRetrieval, Config: x.Config, Engine: x.Engine, Model: x.Model, Tokenizer: x.Tokenizer, Set: set, Group: x.group, Progress: progress})
	}
	list[0].With = list[1:]
	return Evaluate(ctx, list[0])
}

// sameGalleries says in what two splits differ: images, which text is of which image, or
// words.
func sameGalleries(a, b *Split) error {
	if a.Len() != b.Len() {
		return fmt.Errorf("%d and %d images", a.Len(), b.Len())
	}
	for i := range a.Len() {
		if a.ImageID(i) != b.ImageID(i) {
			return fmt.Errorf("image %d has the ids %d and %d", i, a.ImageID(i), b.ImageID(i))
		}
	}
	if a.Eval == nil || b.Eval == nil {
		if a.Eval != b.Eval {
			return errors.New("one is of stored features and the other of images")
		}
		return nil
	}
	if n, m := a.Eval.NumTexts(), b.Eval.NumTexts(); n != m {
		return fmt.Errorf("%d and %d texts", n, m)
	}
	for j := range a.Eval.NumTexts() {
		if a.Eval.TextImage(j) != b.Eval.TextImage(j) || a.Eval.Text(j) != b.Eval.Text(j) {
			return fmt.Errorf("text %d is %q of image %d and %q of image %d", j, a.Eval.Text(j), a.Eval.TextImage(j), b.Eval.Text(j), b.Eval.TextImage(j))
		}
	}
	return nil
}
