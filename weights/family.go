package weights

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// family is a kind of models that name their tensors alike.
type family struct {
	name     string
	types    []string // by which config.json names it
	below    string   // every file of the family has tensors whose names begin so; empty: nothing is asked for
	parts    []part   // of which a file has one with layers at least
	unneeded []string // patterns of tensors beside the parts that no parameter is made of, as path.Match reads them
	// find or findFor say the parts of a file where no table does, none where it is not of the family; within is what
	// the names of the tensors of their layers begin with.
	find    func(f *File) []part
	findFor func(f *File, x *facts) []part
	within  []string
	// out are the parts of a network of convolutions by its layers, for Renamed; nil: parts are.
	out func(layers []string) []part
	// describe says which settings of this module the model has.
	describe func(d *description) error
}

// part is tensors of a family that are there together, such as those of a tower.
type part struct {
	prefixes []string // before the names; the first with which the marks are in a file is taken
	marks    []string // tensors that the part is known by
	ours     string   // before our names
	needs    []rule   // parameters that every such part has
	may      []rule   // those that some have
	unneeded []string // as those of the family, of its own tensors
}

// families are all of them. Where several fit a file as well, the first is taken.
var families = []*family{&bert, &roberta, &mpnet, &vit, &dinov2, &timm, &resNet, &resNetHF, &clip, &siglip, &openCLIP,
	&openCLIPTimm, &clipMTOB, &albef, &distilBERT, &modernBERT, &nomicBERT, &gte, &jinaV3, &qwen3, &euroBERT, &gemma3,
	&electra, &ernie, &albert, &xlmRobertaXL, &t5, &jinaV2, &chineseCLIP, &debertaV2,
	&efficientNet, &timmMobile, &convNeXt, &residual, &regNet, &clipResNet, &dinov3, &beit, &vitTorchvision, &static}

// FamilyNames lists the families.
func FamilyNames() (names []string) {
	for _, f := range families {
		names = append(names, f.name)
	}
	return names
}

// fit is a family with what of a file it takes.
type fit struct {
	*family
	values     map[string]value
	layers     int      // of all parts
	missing    []string // our names
	unexpected []string // names of the file
	unneeded   []string
	stems      []string // what the names of the tensors of layers begin with, before the number of the layer
}

// timmStems are what the names of tensors of timm beside its layers begin with that change what a tower computes: those
// that make tokens of patches, positions, and a pool.
var timmStems = []string{"patch_embed.", "rope.", "rel_pos", "attn_pool.", "attn_pool_contrastive."}

// odd lists the unexpected tensors that stand in layers, or beside them among those of timmStems: these compute something
// else than is read.
func (r *fit) odd() (names []string) {
	for _, name := range r.unexpected {
		if slices.ContainsFunc(timmStems, func(stem string) bool {
			return strings.HasPrefix(name, stem) || strings.Contains(name, "."+stem)
		}) || slices.ContainsFunc(r.stems, func(stem string) bool {
			rest, ok := strings.CutPrefix(name, stem)
			return ok && rest != "" && rest[0] >= '0' && rest[0] <= '9'
		}) {
			names = append(names, name)
		}
	}
	return names
}

// fits tries a family on a file; nil where the file has none of its parts.
func (fam *family) fits(f *File, x *facts) (*fit, error) {
	r := &fit{family: fam, values: map[string]value{}}
	used := map[string]bool{}
	patterns := fam.unneeded
	if !slices.ContainsFunc(f.Names(), func(name string) bool { return strings.HasPrefix(name, fam.below) }) {
		return nil, nil
	}
	parts := fam.parts
	switch {
	case fam.find != nil:
		parts = fam.find(f)
	case fam.findFor != nil:
		parts = fam.findFor(f, x)
	}
	if fam.parts == nil {
		r.layers, r.stems = len(parts), fam.within
	}
	for _, p := range parts {
		prefix, ok := p.prefix(f)
		if !ok {
			continue
		}
		add := func(name string, v value) {
			r.values[p.ours+name] = v
			for _, t := range v.from {
				used[t.Name] = true
			}
		}
		if err := r.take(f, p, prefix, add); err != nil {
			return nil, err
		}
		for _, pattern := range p.unneeded {
			patterns = append(slices.Clip(patterns), prefix+pattern)
		}
		r.stems = append(slices.Clip(r.stems), p.stems(prefix)...)
	}
	if r.layers == 0 {
		return nil, nil
	}
	for _, name := range f.Names() {
		known := func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok }
		switch {
		case used[name]:
		case slices.ContainsFunc(patterns, known):
			r.unneeded = append(r.unneeded, name)
		default:
			r.unexpected = append(r.unexpected, name)
		}
	}
	slices.Sort(r.missing)
	return r, nil
}

// stems are what the names of the tensors of layers begin with.
func (p part) stems(prefix string) (list []string) {
	for _, r := range p.needs {
		for one := range strings.SplitSeq(r.theirs, " | ") {
			if stem, _, ok := strings.Cut(one, "#"); ok && !slices.Contains(list, prefix+stem) {
				list = append(list, prefix+stem)
			}
		}
	}
	return list
}

// take takes the parameters of a part.
func (r *fit) take(f *File, p part, prefix string, add func(string, value)) error {
	if _, err := r.layer(f, p, prefix, -1, add); err != nil {
		return err
	}
	for i := 0; ; i++ {
		if some, err := r.layer(f, p, prefix, i, add); err != nil || !some {
			return err
		}
		r.layers++
	}
}

// layer takes the parameters of one layer of a part, with -1 those that are of none, and says whether any that
// every layer has is there.
func (r *fit) layer(f *File, p part, prefix string, i int, add func(string, value)) (some bool, err error) {
	var lacks []string
	found := func(name string, v value) {
		some = true
		add(name, v)
	}
	for _, rule := range p.needs {
		if rule.numbered() != (i >= 0) {
			continue
		}
		missing, err := rule.apply(f, prefix, i, found)
		if err != nil {
			return false, err
		}
		lacks = append(lacks, missing...)
	}
	if i >= 0 && !some {
		return false, nil
	}
	for _, rule := range p.may {
		if rule.numbered() != (i >= 0) {
			continue
		}
		if _, err := rule.apply(f, prefix, i, add); err != nil {
			return false, err
		}
	}
	for _, name := range lacks {
		r.missing = append(r.missing, p.ours+name)
	}
	return some, nil
}

// prefix returns what stands before the names of a part in a file, false where it has none of it.
func (p part) prefix(f *File) (string, bool) {
	for _, prefix := range p.prefixes {
		if !slices.ContainsFunc(p.marks, func(mark string) bool { return f.find(prefix, mark, "0", "weight") == nil }) {
			return prefix, true
		}
	}
	return "", false
}

// recognise returns the family of a file: that of a name, or of one that config.json has, or without either the
// one that leaves least of the file over.
func recognise(f *File, facts *facts, name string) (*fit, error) {
	if err := facts.unread(); err != nil && name == "" {
		return nil, err
	}
	var best *fit
	var failed error
	kinds := facts.kinds()
	kind := strings.Join(kinds, " or ")
	unsaid := func(f *family) bool {
		return len(kinds) > 0 && !slices.ContainsFunc(kinds, func(k string) bool { return slices.Contains(f.types, k) })
	}
	tried := 0
	for _, fam := range families {
		if name != "" && fam.name != name || name == "" && unsaid(fam) {
			continue
		}
		tried++
		r, err := fam.fits(f, facts)
		if err != nil {
			failed = fmt.Errorf("as %s: %w", fam.name, err)
		}
		if r != nil && (best == nil || r.left() < best.left()) {
			best = r
		}
	}
	const cure = "the families that are read are"
	switch {
	case best != nil:
		return best, nil
	case failed != nil:
		return nil, fmt.Errorf("%s %w", f.Path, failed)
	case name != "":
		return nil, fmt.Errorf("%s has no tensors of the family %s (it has %s): leave the family empty, or give another file", f.Path, name, some(f.Names()))
	case tried == 0:
		return nil, fmt.Errorf("%s has model_type %q, which is not read: %s %s", facts.path, kind, cure,
			strings.Join(FamilyNames(), ", "))
	case kind != "":
		return nil, fmt.Errorf("%s has model_type %q, and %s has no tensors of such a model (it has %s): do both belong together?", facts.path, kind, f.Path, some(f.Names()))
	}
	return nil, fmt.Errorf("%s is of no family that is read (it has %s): %s %s", f.Path, some(f.Names()), cure,
		strings.Join(FamilyNames(), ", "))
}

// left counts what does not fit.
func (r *fit) left() int { return len(r.missing) + len(r.unexpected) }

// some names the first of a list.
func some(names []string) string {
	if len(names) == 0 {
		return "no tensors"
	}
	s := strings.Join(names[:min(len(names), 3)], ", ")
	if len(names) > 3 {
		s += fmt.Sprintf(" and %d more", len(names)-3)
	}
	return s
}

// unread are kinds of models that are known and not read, by how their model_type, their architecture of timm or their
// timm_model_name begins, and why.
var unread = []struct{ kind, why string }{
	{"swin", "attention within shifted windows, whose stages have other widths and numbers of patches"},
	{"siglip2", "images of any shape in patches (NaFlex), where towers here read squares of one size: the files of SigLIP 2 with images of one size have the model_type siglip"},
	{"naflex", "images of any shape in patches (NaFlex), where towers here read squares of one size"},
	{"fastvit", "the blocks of MobileCLIP and FastViT, of several convolutions side by side and attention"},
	{"mobileclip", "the blocks of MobileCLIP and FastViT, of several convolutions side by side and attention"},
	{"vitamin", "stages of convolutions before those of a vision transformer"},
	{"cait", "attention of class tokens by itself and heads that talk to each other"},
	{"xcit", "attention between channels"},
}

// unreadKind says which of these a name is of; empty: none.
func unreadKind(name string) string {
	for _, u := range unread {
		if name != "" && strings.HasPrefix(strings.ToLower(name), u.kind) {
			return fmt.Sprintf("%q, which has %s: no tower here computes that", name, u.why)
		}
	}
	return ""
}

// unread is an error for a model that is known and not read by what the files beside its weights call it.
func (x *facts) unread() error {
	if why := unreadKind(x.config.ModelType); why != "" {
		return fmt.Errorf("%s has model_type %s", x.path, why)
	}
	if why := unreadKind(x.config.Architecture); why != "" {
		return fmt.Errorf("%s has the architecture %s", x.path, why)
	}
	return nil
}
