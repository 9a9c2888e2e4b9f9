package weights

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Param is a parameter, under a name of this module or of another program.
type Param struct {
	Name  string
	Shape []int
	Read  func(dst []float32) error // all of it; dst has the length of the shape
	From  string                    // of Renamed: the name of this module of what it is made of
}

// Naming says which of the names of a family a model gets.
type Naming struct {
	Family string
	// Prefer are parts of names: of several names of a tensor the first with one of them is taken, else
	// the first of all. So mlp.weights_ is DINOv2's gated MLP. Of what may stand before all names it is the one that
	// is among them.
	Prefer []string
	// Registers are rows of zeros for registers in the position table of images, which here has none.
	Registers int
	// Layers are those of a network of convolutions, as model.image.convnet.blocks has them.
	Layers []string
	// Padding are rows of zeros in the position table of texts before the first word.
	Padding int
}

// Renamed returns the tensors of a family that params, parameters of this module, are read back from: the tables of
// Open in reverse. Tensors that a model of the family needs and params do not have are an error, and so are params that
// it has no tensor for.
func Renamed(params []Param, o Naming) ([]Param, error) {
	i := slices.IndexFunc(families, func(f *family) bool { return f.name == o.Family })
	if i < 0 {
		return nil, fmt.Errorf("weights: there is no family %q: use one of %s", o.Family,
			strings.Join(FamilyNames(), ", "))
	}
	n := naming{Naming: o, ours: map[string]Param{}, used: map[string]bool{}, written: map[string]bool{}}
	for _, p := range params {
		n.ours[p.Name] = p
	}
	parts := families[i].parts
	if out := families[i].out; out != nil {
		parts = out(o.Layers)
	}
	for _, part := range parts {
		n.part(part)
	}
	if len(n.missing) > 0 {
		return nil, fmt.Errorf("weights: a model of family %s has %s, which are not there", o.Family, some(n.missing))
	}
	var left []string
	for _, p := range params {
		if !n.used[p.Name] {
			left = append(left, p.Name)
		}
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("weights: models of family %s have no tensors for %s", o.Family, some(left))
	}
	return n.out, nil
}

// naming is Renamed at work.
type naming struct {
	Naming
	ours    map[string]Param
	used    map[string]bool // names of ours
	written map[string]bool // names of theirs
	out     []Param
	missing []string
}

// part adds the tensors of a part, if there are parameters of any rule that all its models have.
func (n *naming) part(p part) {
	prefix := p.prefixes[0]
	for _, s := range p.prefixes {
		if slices.Contains(n.Prefer, s) {
			prefix = s
		}
	}
	some, lacks := n.layer(p, prefix, -1)
	for i := 0; ; i++ {
		more, missing := n.layer(p, prefix, i)
		if !more {
			break
		}
		some, lacks = true, append(lacks, missing...)
	}
	if some {
		n.missing = append(n.missing, lacks...)
	}
}

// layer adds the tensors of a layer, with -1 those that are of none, and returns whether there are any, and the names
// of parameters that it lacks.
func (n *naming) layer(p part, prefix string, i int) (some bool, lacks []string) {
	for k, r := range slices.Concat(p.needs, p.may) {
		if r.numbered() != (i >= 0) {
			continue
		}
		for _, which := range r.which() {
			name := p.ours + spelled(r.ours, fmt.Sprintf("%02d", i), which)
			q, ok := n.ours[name]
			switch {
			case ok:
				some = true
				n.add(q, r, prefix, strconv.Itoa(i), which)
			case k < len(p.needs) && !scale(name):
				lacks = append(lacks, name)
			}
		}
	}
	return some, lacks
}

// scale says whether a parameter is one of the two that one tensor makes, of which a model has one.
func scale(name string) bool { return name == "temperature" || name == "logit_scale" }

// add adds the tensors of a parameter.
func (n *naming) add(q Param, r rule, prefix, layer, which string) {
	n.used[q.Name] = true
	theirs := strings.Split(r.theirs, " | ")
	at := max(0, slices.IndexFunc(theirs, func(s string) bool {
		return slices.ContainsFunc(n.Prefer, func(p string) bool { return p != "" && strings.Contains(s, p) })
	}))
	names := expand(spelled(theirs[at], layer, which))
	for i := range names {
		names[i] = prefix + names[i]
	}
	for _, t := range r.shaping().split(q, names, n.Naming) {
		if !n.written[t.Name] {
			n.written[t.Name], t.From = true, q.Name
			n.out = append(n.out, t)
		}
	}
}

// as is p under another name and shape, with the same numbers.
func (p Param) as(name string, shape ...int) []Param {
	return []Param{{Name: name, Shape: shape, Read: p.Read}}
}

// slice is count numbers of p from from on.
func (p Param) slice(name string, from int, shape ...int) Param {
	return Param{Name: name, Shape: shape, Read: func(dst []float32) error {
		all := make([]float32, count(p.Shape))
		err := p.Read(all)
		copy(dst, all[from:])
		return err
	}}
}

// mapped is p with other numbers.
func (p Param) mapped(name string, f func(x float64) float64) []Param {
	return []Param{{Name: name, Shape: p.Shape, Read: func(dst []float32) error {
		err := p.Read(dst)
		for i, x := range dst {
			dst[i] = float32(f(float64(x)))
		}
		return err
	}}}
}

// rowsOf cuts p into rows for each of the names.
func (p Param) rowsOf(names []string, counts ...int) (out []Param) {
	width := count(p.Shape[1:])
	from := 0
	for i, name := range names {
		out = append(out, p.slice(name, from*width, append([]int{counts[i]}, p.Shape[1:]...)...))
		from += counts[i]
	}
	return out
}

// padded is p, (T, D), with rows of zeros from row at on.
func (p Param) padded(name string, at, zeros int, shape ...int) Param {
	d := p.Shape[1]
	return Param{Name: name, Shape: shape, Read: func(dst []float32) error {
		clear(dst)
		if err := p.Read(dst[:count(p.Shape)]); err != nil {
			return err
		}
		copy(dst[(at+zeros)*d:], dst[at*d:count(p.Shape)])
		clear(dst[at*d : (at+zeros)*d])
		return nil
	}}
}

// The shapings of the tables.
var (
	stacked = &shaping{rows, func(p Param, names []string, _ Naming) []Param {
		if len(names) == 1 {
			return p.as(names[0], p.Shape...)
		}
		return p.rowsOf(names, slices.Repeat([]int{p.Shape[0] / len(names)}, len(names))...)
	}}
	// queryFirst is stacked of a query, and of key and value in one tensor.
	queryFirst = &shaping{rows, func(p Param, names []string, _ Naming) []Param {
		return p.rowsOf(names, p.Shape[0]/3, p.Shape[0]-p.Shape[0]/3)
	}}
	flat = &shaping{joinFlat, func(p Param, names []string, _ Naming) []Param {
		patch := root(p.Shape[1] / 3)
		return p.as(names[0], p.Shape[0], 3, patch, patch)
	}}
	vector = &shaping{joinVector, same}
	// token is a vector that is stored as (1, 1, D).
	token = &shaping{joinVector, func(p Param, names []string,
		_ Naming) []Param {
		return p.as(names[0], 1, 1, p.Shape[0])
	}}
	matrix = &shaping{joinMatrix, same}
	// classTokens are rows, of which a single one is a vector here.
	classTokens = &shaping{func(in []*Tensor) (value, error) {
		if n, d, err := matrixShape(in[0]); err != nil || n > 1 {
			return reshaped(in[0], n, d), err
		}
		return joinVector(in)
	}, func(p Param, names []string, _ Naming) []Param {
		return p.as(names[0], count(p.Shape)/p.Shape[len(p.Shape)-1], p.Shape[len(p.Shape)-1])
	}}
	// probe is a matrix that is stored as (1, T, D).
	probe = &shaping{joinMatrix, func(p Param, names []string, _ Naming) []Param {
		return p.as(names[0], append([]int{1}, p.Shape...)...)
	}}
	scalar = &shaping{joinScalar, same}
	// single is a scalar that is stored as (1).
	single     = &shaping{joinScalar, func(p Param, names []string, _ Naming) []Param { return p.as(names[0], 1) }}
	inverseExp = &shaping{joinInverseExp, func(p Param, names []string, _ Naming) []Param {
		return p.mapped(names[0], func(x float64) float64 { return -math.Log(x) })
	}}
	// plusOne is a scale that is stored without its 1.
	plusOne = &shaping{joinPlusOne, func(p Param, names []string, _ Naming) []Param {
		return p.mapped(names[0], func(x float64) float64 { return x - 1 })
	}}
	// halvesSwapped is rows whose second half comes first.
	halvesSwapped = &shaping{joinHalvesSwapped, func(p Param, names []string, _ Naming) []Param {
		half := p.Shape[0] / 2
		return []Param{{Name: names[0], Shape: p.Shape, Read: func(dst []float32) error {
			all := make([]float32, len(dst))
			err := p.Read(all)
			n := half * count(p.Shape[1:])
			copy(dst[copy(dst, all[n:]):], all[:n])
			return err
		}}}
	}}
	withFirst = &shaping{joinWithFirst, func(p Param, names []string, o Naming) []Param {
		return p.as(names[len(names)-1], p.Shape...)
	}}
	// pointwise is a matrix that may be stored as a convolution of one place.
	pointwise = &shaping{func(in []*Tensor) (value, error) {
		t := in[0]
		if n := len(t.Shape); n != 2 && (n != 4 || t.Shape[2] != 1 || t.Shape[3] != 1) {
			return value{}, odd(t, "a matrix, or a convolution of one place")
		}
		return reshaped(t, t.Shape[0], t.Shape[1]), nil
	}, same}
	transposed = &shaping{joinTransposed, splitTransposed}
	// projection is a matrix that is stored as a linear layer, or transposed under a name of its own.
	projection = &shaping{func(in []*Tensor) (value, error) {
		if strings.HasSuffix(in[0].Name, ".weight") {
			return rows(in)
		}
		return joinTransposed(in)
	}, func(p Param, names []string, o Naming) []Param {
		if strings.HasSuffix(names[0], ".weight") {
			return same(p, names, o)
		}
		return splitTransposed(p, names, o)
	}}
	afterPadding = &shaping{joinAfterPadding, func(p Param, names []string, o Naming) []Param {
		out := []Param{p.padded(names[0], 0, o.Padding, p.Shape[0]+o.Padding, p.Shape[1])}
		for _, name := range names[1:] { // the token type, which the positions have in them
			out = append(out, Param{Name: name, Shape: []int{1, p.Shape[1]},
				Read: func(dst []float32) error { clear(dst); return nil }})
		}
		return out
	}}
	gridPositions = &shaping{joinGridPositions, func(p Param, names []string, o Naming) []Param {
		class := 1 // behind which the registers are
		if side := root(p.Shape[0]); side*side == p.Shape[0] {
			class = 0
		}
		return []Param{p.padded(names[0], class, o.Registers, 1, p.Shape[0]+o.Registers, p.Shape[1])}
	}}
	registerTokens = &shaping{joinRegisterTokens, func(p Param, names []string, _ Naming) []Param {
		return p.as(names[0], append([]int{1}, p.Shape...)...)
	}}
)

// same is a tensor of the shape of its parameter.
func same(p Param, names []string, _ Naming) []Param { return p.as(names[0], p.Shape...) }

// splitTransposed is the transpose of a matrix.
func splitTransposed(p Param, names []string, _ Naming) []Param {
	n, m := p.Shape[0], p.Shape[1]
	return []Param{{Name: names[0], Shape: []int{m, n}, Read: func(dst []float32) error {
		all := make([]float32, len(dst))
		err := p.Read(all)
		for i := range n {
			for j := range m {
				dst[j*n+i] = all[i*m+j]
			}
		}
		return err
	}}}
}
