package weights

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/geoalign/geoalign/encoders"
)

// Model is a stored model of a family whose tensors are read as parameters of this module. It is a
// model.Source, and may be used by several goroutines.
type Model struct {
	Family string
	Notes  []string // what was assumed, or differs
	// of the notes, why features of both sides would be others than those of the weights; each tower alone is read
	// rightly
	Unlike []string
	// TowerNotes are further ones, of a tower that starts from the weights alone: what stands behind it is not read then.
	TowerNotes []string
	Encoder    Encoder
	Tokenizer  Tokenizer
	Clean      string // how open_clip cleans texts before its tokenizer reads them; empty: no file says that it does

	file     *File
	fit      *fit
	settings []Setting
	smooth   bool // see description.smooth

	lock sync.Mutex
	read map[string]how // what was read so far
}

// how a parameter was read.
type how int

const (
	asStored how = iota
	resampled
	cut
)

// Open opens the weights at path, as OpenFile does, and the files beside them: config.json,
// open_clip_config.json, preprocessor_config.json or processor_config.json, those of a tokenizer. It fails where the
// tensors are of no family, or are not what config.json says. Close it after use.
func Open(path string) (*Model, error) { return OpenAs(path, "") }

// OpenAs is Open of weights of a family, one of FamilyNames, whatever config.json says; with an empty one it is Open.
func OpenAs(path, family string) (*Model, error) { return open(path, family, "") }

// open is OpenAs, with adapters in a folder merged into the weights; without one nothing may be beside them that says
// there are any.
func open(path, family, adapters string) (*Model, error) {
	if family != "" && !slices.Contains(FamilyNames(), family) {
		return nil, fmt.Errorf("weights: there is no family %q: the families are %s", family,
			strings.Join(FamilyNames(), ", "))
	}
	inner, err := transformerFolder(path)
	if err != nil {
		return nil, fmt.Errorf("weights: %w", err)
	}
	f, err := OpenFile(inner)
	if err != nil {
		return nil, err
	}
	modules := filepath.Dir(f.Path)
	if inner != path {
		modules = path
	}
	m, err := openIn(f, modules, family, adapters)
	if err == nil {
		return m, nil
	}
	f.Close()
	return nil, fmt.Errorf("weights: %w", err)
}

// openIn is open of the tensors of a file; modules is the folder of sentence-transformers.
func openIn(f *File, modules, family, adapters string) (*Model, error) {
	note := ""
	if adapters != "" {
		var err error
		if note, err = f.adapt(adapters); err != nil {
			return nil, err
		}
	} else if _, err := os.Stat(filepath.Join(modules, AdapterConfig)); err == nil {
		return nil, fmt.Errorf("%s has %s beside the weights: import --adapter %s merges its adapter into them, and without that file they are read as they are", modules, AdapterConfig, modules)
	}
	facts, err := readFacts(filepath.Dir(f.Path), modules)
	if err != nil {
		return nil, err
	}
	m, err := describe(f, facts, family)
	if err == nil && note != "" {
		m.Notes = append(m.Notes, note)
	}
	return m, err
}

// describe makes a model of tensors and of what is known beside them. An empty family is the one that it looks like.
func describe(f *File, facts *facts, family string) (*Model, error) {
	f, fit, note, err := recogniseWrapped(f, facts, family)
	if err != nil {
		return nil, err
	}
	d := &description{facts: facts, fit: fit, file: f, named: family != ""}
	if note != "" {
		d.note("%s", note)
	}
	if err := fit.describe(d); err != nil {
		return nil, fmt.Errorf("%s as %s: %w", f.Path, fit.name, err)
	}
	if odd := fit.odd(); len(odd) > 0 {
		return nil, fmt.Errorf("%s as %s: its layers have tensors that are not read (%s), and compute something else than layers here", f.Path, fit.name, some(odd))
	}
	clean, err := d.clean()
	if err != nil {
		return nil, err
	}
	return &Model{Clean: clean, Family: fit.name, Encoder: d.encoder(), TowerNotes: d.towerNotes, Notes: d.notes, Unlike: d.unlike, Tokenizer: facts.tokenizer, file: f, fit: fit,
		settings: d.settings, smooth: d.smooth, read: map[string]how{}}, nil
}

// Path returns the file of the weights, or the index of its shards.
func (m *Model) Path() string { return m.file.Path }

// Files lists the files that the tensors are in.
func (m *Model) Files() (list []string) {
	for _, s := range m.file.shards {
		list = append(list, s.path)
	}
	return list
}

// Close closes the files.
func (m *Model) Close() error { return m.file.Close() }

// Settings lists the keys of a configuration that make a model of these parameters, in the order of its sections.
func (m *Model) Settings() []Setting { return slices.Clone(m.settings) }

// Names lists the parameters in order.
func (m *Model) Names() []string { return slices.Sorted(maps.Keys(m.fit.values)) }

// Shape returns the shape of a parameter, nil where there is none of the name.
func (m *Model) Shape(name string) []int { return slices.Clone(m.fit.values[name].shape) }

// Has says whether there is a parameter of a name.
func (m *Model) Has(name string) bool {
	_, ok := m.fit.values[name]
	return ok
}

// Names of position tables, which may be read in other shapes.
const (
	imagePositions = "image/pos_embed"
	textPositions  = "text/embeddings/position/weight"
	tokenTypes     = "text/embeddings/token_type/weight"
)

// Read converts a parameter to float32 in dst, of the given shape. A position table of images is resampled to
// another grid, by the law of the family (encoders.InterpolatePositions or SmoothPositions), one of texts is cut. So is
// a table of other than two types of tokens, or it gets rows of zeros.
// Another shape of any other parameter is an error.
func (m *Model) Read(name string, shape []int, dst []float32) error {
	v, ok := m.fit.values[name]
	switch {
	case !ok:
		return fmt.Errorf("weights: %s has nothing that %s is made of", m.file.Path, name)
	case count(shape) != len(dst):
		return fmt.Errorf("weights: %s: shape %v has %d elements, and %d are to be read", name, shape, count(shape),
			len(dst))
	case slices.Equal(v.shape, shape):
		return m.done(name, asStored, v.read(dst))
	}
	bare := strings.TrimPrefix(name, "momentum/")
	if table := len(shape) == 2 && len(v.shape) == 2 && shape[1] == v.shape[1]; table {
		switch {
		case bare == imagePositions:
			return m.done(name, resampled, m.resample(name, v, shape, dst))
		case bare == tokenTypes: // of which single texts have the first alone: others are left out, or 0
			all := make([]float32, count(v.shape))
			err := v.read(all)
			clear(dst[copy(dst, all):])
			return m.done(name, cut, err)
		case bare == textPositions && shape[0] < v.shape[0]:
			all := make([]float32, count(v.shape))
			err := v.read(all)
			copy(dst, all)
			return m.done(name, cut, err)
		case bare == textPositions:
			return fmt.Errorf("weights: %s has %d positions in %s, and %d are wanted: set model.text.positions = %d, and data.tokens to no more", name, v.shape[0], m.file.Path, shape[0], v.shape[0])
		}
	}
	return fmt.Errorf("weights: %s has shape %v in %s, and %v is wanted: the settings of the weights are %s", name,
		v.shape, m.file.Path, shape, m.section(bare))
}

// section lists the settings of a side.
func (m *Model) section(name string) string {
	side, _, _ := strings.Cut(name, "/")
	var list []string
	for _, s := range m.settings {
		if strings.HasPrefix(s.Key, "model."+side+".") || strings.HasPrefix(s.Key, "model.head.") &&
			strings.HasSuffix(side, "_proj") {
			list = append(list, s.String())
		}
	}
	return strings.Join(list, " ")
}

// resample reads a position table of images at another grid.
func (m *Model) resample(name string, v value, shape []int, dst []float32) error {
	classes := m.fit.classes(strings.TrimSuffix(name, imagePositions) + "image/cls_token")
	side := int(math.Round(math.Sqrt(float64(max(0, shape[0]-classes)))))
	if side*side != shape[0]-classes {
		return fmt.Errorf("weights: %s has %d rows with %d for class tokens in %s, and %d are wanted, which are no square grid with as many", name, v.shape[0], classes, m.file.Path, shape[0])
	}
	table := make([]float32, count(v.shape))
	if err := v.read(table); err != nil {
		return err
	}
	law := encoders.InterpolatePositions
	if m.smooth {
		law = encoders.SmoothPositions
	}
	table, err := law(table, shape[1], classes, side)
	if err != nil {
		return fmt.Errorf("weights: %s of %s: %w", name, m.file.Path, err)
	}
	copy(dst, table)
	return nil
}

// done notes how a parameter was read, if it was.
func (m *Model) done(name string, h how, err error) error {
	if err == nil {
		m.lock.Lock()
		m.read[name] = h
		m.lock.Unlock()
	}
	return err
}
