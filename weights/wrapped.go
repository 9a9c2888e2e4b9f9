package weights

import (
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/internal/words"
)

// wrappers are what programs that train a model put before the names of its tensors, such as the attributes of a module
// of Lightning. Unlike those of unwrapped they are part of the names of some families.
var wrappers = []string{"model.", "module.", "_orig_mod.", "net.", "network.", "backbone.", "encoder.", "auto_model.", "transformer.", "0."}

// wrapped is a model below a prefix.
type wrapped struct {
	prefix string
	file   *File
	fit    *fit
}

// below is the tensors whose names begin with a prefix, without it. It has the open files of f.
func (f *File) below(prefix string) *File {
	inner := &File{Path: f.Path, shards: f.shards, tensors: map[string]*Tensor{}}
	for name, t := range f.tensors {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			x := *t
			x.Name = rest
			inner.tensors[rest] = &x
		}
	}
	return inner
}

// unwrap looks for models below wrappers, up to so many of them.
func (f *File) unwrap(facts *facts, family string, deep int) (list []wrapped) {
	for _, prefix := range wrappers {
		inner := f.below(prefix)
		if len(inner.tensors) == 0 {
			continue
		}
		if fit, err := recognise(inner, facts, family); err == nil {
			list = append(list, wrapped{prefix, inner, fit})
		} else if deep > 1 {
			for _, w := range inner.unwrap(facts, family, deep-1) {
				w.prefix = prefix + w.prefix
				list = append(list, w)
			}
		}
	}
	return list
}

// maxWrappers is the most wrappers that a model is below.
const maxWrappers = 3

// recogniseWrapped is recognise, of tensors as they are or else below the wrappers of a program that has trained them. note
// says what was left out.
func recogniseWrapped(f *File, facts *facts, family string) (inner *File, r *fit, note string, err error) {
	r, err = recognise(f, facts, family)
	if err == nil {
		return f, r, "", nil
	}
	switch list := f.unwrap(facts, family, maxWrappers); len(list) {
	case 0:
		return nil, nil, "", err
	case 1:
		w := list[0]
		note = fmt.Sprintf("the names of its tensors are taken without %q", w.prefix)
		if n := len(f.tensors) - len(w.file.tensors); n > 0 {
			note += fmt.Sprintf(", and %s without that left out", words.Count(n, "tensor"))
		}
		return w.file, w.fit, note, nil
	default:
		return nil, nil, "", fmt.Errorf("%s has a model below %q and one below %q: save one of them alone", f.Path, list[0].prefix, list[1].prefix)
	}
}
