package weights

import (
	"fmt"
	"strconv"
	"strings"
)

// rule says which tensors a parameter is made of, and how.
//
// In both names # stands for the number of a layer, which has two digits in ours, and * for weight and
// for bias: a rule of both is a rule for each. {a,b} in theirs are two tensors, and " | " parts names of
// which the first whose tensors are all in the file is taken.
type rule struct {
	ours   string
	theirs string
	make   *shaping // nil: stacked
}

// shaping is how a parameter is made of tensors, and how they are made of it.
type shaping struct {
	join  func(in []*Tensor) (value, error)
	split func(p Param, names []string, o Naming) []Param
}

// value is a parameter that can be read.
type value struct {
	shape []int
	read  func(dst []float32) error // dst has the length of the shape
	from  []*Tensor
}

// spelled returns a name of a rule for a layer and weight or bias.
func spelled(name string, layer string, which string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "#", layer), "*", which)
}

// expand returns the names that {a,b} in a name stands for.
func expand(name string) []string {
	before, list, ok := strings.Cut(name, "{")
	if !ok {
		return []string{name}
	}
	list, after, _ := strings.Cut(list, "}")
	var names []string
	for part := range strings.SplitSeq(list, ",") {
		names = append(names, before+part+after)
	}
	return names
}

// find returns the tensors of the first of the alternatives in theirs that the file has as a whole.
func (f *File) find(prefix, theirs, layer, which string) []*Tensor {
	for one := range strings.SplitSeq(theirs, " | ") {
		var in []*Tensor
		names := expand(spelled(one, layer, which))
		for _, name := range names {
			if t, ok := f.tensors[prefix+name]; ok {
				in = append(in, t)
			}
		}
		if len(in) == len(names) {
			return in
		}
	}
	return nil
}

// numbered says whether there is a parameter for each layer.
func (r rule) numbered() bool { return strings.Contains(r.ours, "#") }

// shaping is the one of a rule.
func (r rule) shaping() *shaping {
	if r.make == nil {
		return stacked
	}
	return r.make
}

// which lists what * stands for in the names of a rule.
func (r rule) which() []string {
	if strings.Contains(r.ours, "*") {
		return []string{"weight", "bias"}
	}
	return []string{"weight"}
}

// apply finds the parameters of a rule in a layer, or those that are of no layer. missing are the names of those that
// lack tensors.
func (r rule) apply(f *File, prefix string, layer int, add func(name string, v value)) (missing []string, err error) {
	ours, theirs := fmt.Sprintf("%02d", layer), strconv.Itoa(layer)
	for _, which := range r.which() {
		name := spelled(r.ours, ours, which)
		in := f.find(prefix, r.theirs, theirs, which)
		if in == nil || in[0].Len() == 0 { // such as registers of which there are none
			missing = append(missing, name)
			continue
		}
		v, err := r.shaping().join(in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		v.from = in
		add(name, v)
	}
	return missing, nil
}
