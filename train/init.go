package train

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/weights"
	"gorgonia.org/tensor"
)

// InitReport says what InitModel took over.
type InitReport struct {
	Loaded    int
	Resampled []string // position tables brought to another image size
	// tables of words with rows behind those of the checkpoint, which are left as initialised: those of Renamed, too
	Grown   []string
	Renamed []string // parameters that start from those of another name, such as a decoder from fusion layers
	Fresh   []string // parameters that the checkpoint lacks: left as initialised
	Unused  []string // parameters that the model lacks and none of its own starts from
	// weights that have taken in an adapter, or a scale, that the model lacks, or has in another form
	Merged []string
}

// String tells in a line what was taken over and what was not.
func (r InitReport) String() string {
	s := fmt.Sprintf("%d loaded", r.Loaded)
	for _, l := range []struct {
		what  string
		names []string
	}{{"resampled", r.Resampled}, {"with room for new words", r.Grown}, {"from others of the checkpoint", r.Renamed},
		{"left at random", r.Fresh}, {"not used", r.Unused}, {"with tuning of the checkpoint merged", r.Merged}} {
		if n := len(l.names); n > 0 {
			s += fmt.Sprintf(", %d %s (%s)", n, l.what, strings.Join(l.names[:min(n, 3)], ", "))
			if n > 3 {
				s = s[:len(s)-1] + ", ...)"
			}
		}
	}
	return s
}

// InitModel starts a model from the parameters of a checkpoint: those of equal name
// and shape are copied and the position table of another image size is resampled.
// Parameters of a downstream task that the checkpoint lacks start from others of it (renamed.go), and so do further
// fusion layers. Tables of words may have more rows than those of the checkpoint, for words that its tokenizer has
// taken in (init.new_words). What comes from the data of training stays. Twins start from the checkpoint's teacher, as
// in ALBEF's code, whose checkpoints hold it among the parameters; where there is none they become copies. A parameter
// of another shape is an error, and so is a checkpoint that shares nothing with the model. Fusion layers of one picture
// of a text are the start of those of two. Adapters of low rank, scales and shifts of the checkpoint go on where those
// of the model, now, are the same; elsewhere the weights of their layers take them in, so that nothing of them is lost.
// Bottlenecks and prompts that the model lacks are not used. A classifier of other classes, and the head of a task of
// other classes, start anew.
func InitModel(m Trainable, c *checkpoint.Checkpoint, now config.Model) (InitReport, error) {
	var r InitReport
	p := m.Params()
	was, keep, err := folded(c, p, now)
	if err != nil {
		return r, err
	}
	list, err := Params(c, "model", was, keep)
	if err != nil {
		return r, err
	}
	if list, err = forPictures(list, p.Names(), c.Path); err != nil {
		return r, err
	}
	from := byName(list)
	plain, err := decoderStarts(c, "model", was, keep, p.Names())
	if err != nil {
		return r, err
	}
	if err := dropClassHead(c, m, from); err != nil {
		return r, err
	}
	dropTaskHeads(m, from)
	read := map[string]bool{} // by their names in the checkpoint
	for _, q := range p.List() {
		if q.Given {
			continue
		}
		took, name, err := take(startOf(q.Name, from, plain, now), c.Path, q, p.Value(q), now)
		if err != nil {
			return r, err
		}
		read[name] = true
		switch took {
		case grown:
			r.Grown = append(r.Grown, q.Name)
		case other:
			r.Renamed = append(r.Renamed, q.Name)
			if !tensor.Shape(from[name].Shape).Eq(q.Shape) {
				r.Grown = append(r.Grown, q.Name)
			}
		case absent:
			r.Fresh = append(r.Fresh, q.Name)
			continue
		case resampled:
			r.Resampled = append(r.Resampled, q.Name)
		}
		r.Loaded++
	}
	if r.Loaded == 0 {
		return r, fmt.Errorf("train: %s has no parameter of this model: is it a checkpoint of another system?", c.Path)
	}
	for _, x := range list {
		if _, ok := p.Get(x.Name); !ok && !read[x.Name] {
			r.Unused = append(r.Unused, x.Name)
		}
	}
	if r.Merged, err = mergedLayers(c, from); err != nil {
		return r, err
	}
	p.CopyToMomentum()
	if !c.Has(MomentumGroup) {
		return r, nil
	}
	if list, err = Params(c, MomentumGroup, was, keep); err != nil {
		return r, err
	}
	if list, err = forPictures(list, p.Names(), c.Path); err != nil {
		return r, err
	}
	from = byName(list)
	if plain, err = decoderStarts(c, MomentumGroup, was, keep, p.Names()); err != nil {
		return r, err
	}
	dropTaskHeads(m, from)
	for _, q := range p.List() {
		if q.Momentum && !q.Given {
			if _, _, err := take(startOf(q.Name, from, plain, now), c.Path, q, p.MomentumValue(q), now); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// mergedLayers lists the weights that have taken in what tuned them in a checkpoint.
func mergedLayers(c *checkpoint.Checkpoint, from map[string]weights.Param) (names []string, err error) {
	f, err := c.Group("model")
	if err != nil {
		return nil, err
	}
	for _, x := range f.Tensors() {
		if _, kept := from[x.Name]; foldable(x.Name) && !kept {
			layer, _ := splitName(x.Name)
			if w := layer + "/weight"; !slices.Contains(names, w) {
				names = append(names, w)
			}
		}
	}
	return names, nil
}

// byName is a table of parameters.
func byName(list []weights.Param) map[string]weights.Param {
	table := make(map[string]weights.Param, len(list))
	for _, p := range list {
		table[p.Name] = p
	}
	return table
}

// ShapeError is a parameter that a checkpoint has in another shape than the model.
type ShapeError struct {
	Param    string
	Path     string // of the checkpoint
	Was      []int  // shape in the checkpoint
	Now      []int  // and in the model
	Settings string // the settings that give it its shape, in words that follow "set"
}

// Error names the parameter, both shapes and the settings.
func (e *ShapeError) Error() string {
	return fmt.Sprintf("train: %s has shape %v in %s and %v in this model: set %s of the checkpoint (trainer inspect shows them)", e.Param, e.Was, e.Path, e.Now, e.Settings)
}

// How take found a parameter.
const (
	absent = iota
	copied
	resampled
	grown // the first rows of it
	other // under another name
)

// take fills dst, the values of q or of its twin, from the parameters of the checkpoint
// at path. It returns how, and the name of the one that it read.
func take(from map[string]weights.Param, path string, q *model.Param, dst []float32, now config.Model) (how int,
	name string, err error) {
	info, ok := from[q.Name]
	switch {
	case !ok:
		if info, ok = renamed(from, q, now); !ok {
			return absent, "", nil
		}
		return other, info.Name, info.Read(dst[:tensor.Shape(info.Shape).TotalSize()])
	case tensor.Shape(info.Shape).Eq(q.Shape):
		return copied, info.Name, info.Read(dst)
	case fits(info.Shape, q):
		return grown, info.Name, info.Read(dst[:tensor.Shape(info.Shape).TotalSize()])
	case !q.Grid || len(info.Shape) != 2 || info.Shape[1] != q.Shape[1]:
		settings := q.Settings
		if settings == "" || info.Shape[len(info.Shape)-1] != q.Shape[len(q.Shape)-1] && q.Group == "" {
			settings = "[model] to the sizes"
		}
		return 0, "", &ShapeError{q.Name, path, info.Shape, q.Shape, settings}
	}
	table := make([]float32, info.Shape[0]*info.Shape[1])
	if err := info.Read(table); err != nil {
		return 0, "", err
	}
	side := int(math.Round(math.Sqrt(float64(q.Shape[0] - q.Classes)))) // of the grid
	table, err = encoders.InterpolatePositions(table, q.Shape[1], q.Classes, side)
	if err != nil {
		return 0, "", fmt.Errorf("train: %s of %s: %w", q.Name, path, err)
	}
	copy(dst, table)
	return resampled, info.Name, nil
}
