package weights

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/words"
)

// AdapterConfig is the file by which a folder of PEFT is known.
const AdapterConfig = "adapter_config.json"

// adapterFiles are the names of the weights of an adapter. The first that is there is taken.
var adapterFiles = []string{"adapter_model.safetensors", "adapter_model.bin"}

// adapter is what is read of adapter_config.json.
type adapter struct {
	Kind     string             `json:"peft_type"`
	Base     string             `json:"base_model_name_or_path"`
	Rank     int                `json:"r"`
	Alpha    float64            `json:"lora_alpha"`
	Alphas   map[string]float64 `json:"alpha_pattern"` // of layers, by expressions for the ends of their names
	Root     bool               `json:"use_rslora"`    // alpha is divided by the root of the rank
	FanIn    bool               `json:"fan_in_fan_out"`
	DoRA     bool               `json:"use_dora"`
	Repeated json.RawMessage    `json:"layer_replication"`
}

// lowRank is what an adapter adds to a matrix (out, in): scale B A, with A (r, in) and B (out, r).
type lowRank struct {
	down, up []float32
	rank     int
	scale    float64
}

// add adds to the elements dst of a matrix with rows of so many columns, from element from on.
func (a *lowRank) add(dst []float32, from, columns int) {
	sum := make([]float64, columns)
	for len(dst) > 0 {
		row, first := from/columns, from%columns
		n := min(columns-first, len(dst))
		clear(sum[:n])
		for k := range a.rank {
			b := float64(a.up[row*a.rank+k])
			for i, v := range a.down[k*columns+first:][:n] {
				sum[i] += b * float64(v)
			}
		}
		for i := range n {
			dst[i] = float32(float64(dst[i]) + a.scale*sum[i])
		}
		dst, from = dst[n:], from+n
	}
}

// OpenAdapted is OpenAs of weights with the adapters in a folder of PEFT merged into them: adapters of low rank beside
// linear layers (LoRA), and layers that were trained as a whole. Model.Notes says how many there were.
func OpenAdapted(path, family, folder string) (*Model, error) { return open(path, family, folder) }

// adapt merges the adapters in a folder into the tensors and says what was done.
func (f *File) adapt(folder string) (note string, err error) {
	var c adapter
	place := filepath.Join(folder, AdapterConfig)
	switch ok, err := readJSON(place, &c); {
	case err != nil:
		return "", err
	case !ok:
		return "", fmt.Errorf("%s: %w: give the folder that PEFT has saved an adapter in", place, fs.ErrNotExist)
	}
	for _, x := range []struct {
		is   bool
		what string
	}{
		{c.Kind != "LORA", fmt.Sprintf("peft_type = %q", c.Kind)}, {c.DoRA, "use_dora = true"}, {c.FanIn, "fan_in_fan_out = true"},
		{len(c.Repeated) > 0 && string(c.Repeated) != "null", "layer_replication"},
	} {
		if x.is {
			return "", fmt.Errorf("%s has %s, and plain adapters of low rank (LORA) are read: merge it with PEFT (merge_and_unload) and import what that saves", place, x.what)
		}
	}
	in, err := openAdapter(folder)
	if err != nil {
		return "", err
	}
	f.shards = append(f.shards, in.shards...) // closed with them
	low, whole, err := in.adapterParts()
	if err != nil {
		return "", err
	}
	for _, module := range slices.Sorted(maps.Keys(low)) {
		if err := f.adaptLayer(c, module, low[module]); err != nil {
			return "", err
		}
	}
	var none []string
	for _, name := range slices.Sorted(maps.Keys(whole)) {
		t, found := whole[name], f.named(name)
		switch {
		case len(found) == 0:
			none = append(none, name)
		case len(found) > 1 || !slices.Equal(found[0].Shape, t.Shape):
			return "", fmt.Errorf("%s has %s of shape %v, and %s has %s of shape %v: is it an adapter of these weights?", in.Path, name, t.Shape, f.Path, found[0].Name, found[0].Shape)
		default:
			x := *t
			x.Name = found[0].Name
			f.tensors[x.Name] = &x
		}
	}
	note = fmt.Sprintf("adapters of %s from %s are merged", words.Count(len(low), "layer"), folder)
	if n := len(whole) - len(none); n > 0 {
		note += fmt.Sprintf(", and %s trained as a whole", words.Count(n, "tensor"))
	}
	if len(none) > 0 {
		note += fmt.Sprintf("; left out, as the weights have no such tensors: %s", some(none))
	}
	return note, nil
}

// openAdapter opens the weights of an adapter.
func openAdapter(folder string) (*File, error) {
	for _, name := range adapterFiles {
		f := &File{Path: filepath.Join(folder, name), tensors: map[string]*Tensor{}}
		_, err := f.add(f.Path, false)
		switch {
		case err == nil:
			return f, nil
		case !errors.Is(err, fs.ErrNotExist):
			return nil, errors.Join(err, f.Close())
		}
	}
	return nil, fmt.Errorf("%s has %s and neither of %s: download the folder as a whole", folder, AdapterConfig,
		strings.Join(adapterFiles, ", "))
}

// adapterParts are the two matrices of each layer, first A, and the tensors that were trained as a whole, by the names of the model.
func (f *File) adapterParts() (low map[string]*[2]*Tensor, whole map[string]*Tensor, err error) {
	low, whole = map[string]*[2]*Tensor{}, map[string]*Tensor{}
	for _, full := range f.Names() {
		name := strings.ReplaceAll(strings.TrimPrefix(full, "base_model.model."), ".default.", ".") // of saves by hand
		name = strings.ReplaceAll(name, ".modules_to_save.", ".")
		module, a := strings.CutSuffix(name, ".lora_A.weight")
		if !a {
			var b bool
			if module, b = strings.CutSuffix(name, ".lora_B.weight"); !b {
				if strings.Contains(name, "lora_") {
					return nil, nil, fmt.Errorf("%s has %s, and lora_A.weight and lora_B.weight of linear layers are read: merge it with PEFT (merge_and_unload) and import what that saves", f.Path, full)
				}
				whole[strings.ReplaceAll(name, ".base_layer.", ".")] = f.tensors[full]
				continue
			}
		}
		if low[module] == nil {
			low[module] = &[2]*Tensor{}
		}
		low[module][map[bool]int{true: 0, false: 1}[a]] = f.tensors[full]
	}
	if len(low)+len(whole) == 0 {
		return nil, nil, fmt.Errorf("%s has no tensors", f.Path)
	}
	return low, whole, nil
}

// adaptLayer adds an adapter to the weight of a layer.
func (f *File) adaptLayer(c adapter, module string, ab *[2]*Tensor) error {
	a, b := ab[0], ab[1]
	if a == nil || b == nil {
		return fmt.Errorf("%s has one of lora_A.weight and lora_B.weight alone: download the adapter again", module)
	}
	found := f.named(module + ".weight")
	if len(found) != 1 {
		return fmt.Errorf("%s has an adapter for %s, and %s has %s of that name: is it an adapter of these weights%s?", a.file.path, module,
			f.Path, words.Count(len(found), "tensor"), of(c.Base))
	}
	w := found[0]
	if len(w.Shape) != 2 || len(a.Shape) != 2 || len(b.Shape) != 2 || a.Shape[0] != b.Shape[1] || a.Shape[1] != w.Shape[1] || b.Shape[0] != w.Shape[0] {
		return fmt.Errorf("%s has lora_A %v and lora_B %v for %s, which has shape %v in %s: is it an adapter of these weights%s?", a.file.path, a.Shape, b.Shape,
			module, w.Shape, f.Path, of(c.Base))
	}
	x := lowRank{down: make([]float32, a.Len()), up: make([]float32, b.Len()), rank: a.Shape[0]}
	if x.rank == 0 {
		return fmt.Errorf("%s has lora_A of shape %v for %s: download the adapter again", a.file.path, a.Shape, module)
	}
	if err := errors.Join(a.Read(x.down, 0), b.Read(x.up, 0)); err != nil {
		return err
	}
	alpha := c.Alpha
	for _, pattern := range slices.Sorted(maps.Keys(c.Alphas)) {
		r, err := regexp.Compile(`^(?:.*\.)?(?:` + pattern + `)$`)
		if err != nil {
			return fmt.Errorf("alpha_pattern of %s: %w", AdapterConfig, err)
		}
		if r.MatchString(module) {
			alpha = c.Alphas[pattern]
		}
	}
	x.scale = alpha / float64(x.rank)
	if c.Root {
		x.scale = alpha / math.Sqrt(float64(x.rank))
	}
	adapted := *w
	adapted.adapter = &x
	f.tensors[w.Name] = &adapted
	return nil
}

// of names the model that an adapter says it is of.
func of(base string) string {
	if base == "" {
		return ""
	}
	return ", of " + words.Shown(base)
}

// named are the tensors of a name of a class: that one, or those whose names are its end, or end with it, as classes with a
// head have their model below a name.
func (f *File) named(name string) (list []*Tensor) {
	if t, ok := f.tensors[name]; ok {
		return []*Tensor{t}
	}
	for _, n := range f.Names() {
		if strings.HasSuffix(n, "."+name) || strings.Contains(n, ".") && strings.HasSuffix(name, "."+n) {
			list = append(list, f.tensors[n])
		}
	}
	return list
}

// adapterAlone says that a folder has an adapter and not the weights that it is of.
func adapterAlone(folder string, c adapter) error {
	base := "BASE"
	if c.Base != "" {
		base = words.Shown(c.Base)
	}
	return fmt.Errorf("%s has an adapter and not the weights that it is put into: import --from %s --adapter %s", folder, base, folder)
}
