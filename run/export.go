package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/export"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/weights"
)

// Export writes the model in the form of another program, see package export. With OpenOptions.Twin the
// momentum twins take the place of their parameters.
func (t *Trained) Export(o export.Options) (export.Written, error) {
	m := export.Model{Config: t.Config}
	var err error
	if m.Params, err = t.params(); err != nil {
		return export.Written{}, err
	}
	if o.To == export.ALBEF && !t.twin {
		if m.Twins, err = t.twins(); err != nil {
			return export.Written{}, err
		}
	}
	if !t.Config.Model.Stored() {
		if m.Tokenizer, err = train.OpenTokenizer(t.Checkpoint); err != nil {
			return export.Written{}, err
		}
	}
	w, err := export.Write(m, o)
	if refused := (*export.RefusedError)(nil); errors.As(err, &refused) {
		err = &ArgumentError{err}
	}
	return w, err
}

// params are the parameters of the checkpoint.
func (t *Trained) params() ([]weights.Param, error) {
	for _, group := range modelGroups {
		if !t.Checkpoint.Has(group) {
			continue
		}
		f, err := t.Checkpoint.Group(group)
		if err != nil {
			return nil, err
		}
		list := wanted(f, "", nil)
		if !t.twin {
			return list, nil
		}
		twins, err := t.Checkpoint.Group(train.TwinsGroup)
		if err != nil {
			return nil, err
		}
		of := wanted(twins, "", nil)
		for i, p := range list {
			if k := slices.IndexFunc(of, func(q weights.Param) bool { return q.Name == p.Name }); k >= 0 {
				list[i] = of[k]
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("%s has no parameters", t.Checkpoint.Path)
}

// twins are the momentum twins, as momentum/NAME, and the features of the queue; none where there are none.
func (t *Trained) twins() (list []weights.Param, err error) {
	for group, prefix := range map[string]string{train.TwinsGroup: "momentum/", "queue": "queue/"} {
		if !t.Checkpoint.Has(group) {
			continue
		}
		f, err := t.Checkpoint.Group(group)
		if err != nil {
			return nil, err
		}
		only := []string{}
		if group == "queue" {
			only = []string{"image", "text"}
		}
		list = append(list, wanted(f, prefix, only)...)
	}
	slices.SortFunc(list, func(a, b weights.Param) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// wanted are the tensors of a file as parameters with a prefix, those of only where it is not empty.
func wanted(f *safetensors.File, prefix string, only []string) (list []weights.Param) {
	for _, info := range f.Tensors() {
		if len(only) > 0 && !slices.Contains(only, info.Name) {
			continue
		}
		list = append(list, weights.Param{Name: prefix + info.Name, Shape: info.Shape, Read: func(dst []float32) error {
			return f.ReadFloat32(info.Name, dst)
		}})
	}
	return list
}
