package gallery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/search"
	"github.com/geoalign/geoalign/space"
)

// Gallery is an opened gallery. Many goroutines may use it at once. Close it after use.
type Gallery struct {
	Path string
	Meta Meta
	// another one where the contents are others; of files without a checksum also where they are copied or touched
	ID   string
	Root string // folder that the names of images start from; empty: the current one

	sides  []string          // that have rows, images first
	tables map[string]*table // by tensor: image, image_features, text
	names  map[string]*lines // by side
	index  string            // where indices lie, without what they are of
	by     search.Metric     // that was asked for; empty: as the model scores

	generation int             // of the manifest that was read
	checks     []Check         // of the files
	checked    <-chan struct{} // closed when damage is known; nil: there is none
	damage     error
	stopChecks func()

	changed string               // the side that a Writer changes; empty: none does
	now     atomic.Pointer[live] // of that side; nil: the rows are those of the files
	put     map[string]int32     // rows that were put, the last ones of their ids
	logEnd  int64                // of the log that was read
	found   map[string]func() (*ids, error)

	mu       sync.Mutex
	views    map[string]*View
	selected map[string]*selection // by side and filter

	reading sync.Mutex       // of names, for a filter
	column  map[string][]any // (N) of the files, by side and key
}

// Tensors of a gallery beside those named like a side.
const imageFeatures = "image_features" // images as the head gives them, where image has them folded

// Open opens the folder of a gallery, or one file of features (.npy, or .safetensors with one
// tensor), whose rows are compared by the cosine.
//
// Files are compared with the checksums that embed noted, in full where what the file system says of them does not
// prove that they are as they were at an earlier time: before Open returns if that takes an instant, else while the
// caller goes on, see Wait.
func Open(path string) (*Gallery, error) {
	g := newGallery(path)
	err := g.open()
	for range openTries { // a Writer may have replaced the files meanwhile
		if err == nil || !g.replaced() {
			break
		}
		err = errors.Join(g.Close())
		if g = newGallery(path); err == nil {
			err = g.open()
		}
	}
	if err != nil {
		for i := range g.checks { // of which one may say it better
			if c := &g.checks[i]; c.Sum != "" {
				if bad := c.Known(context.Background()); bad != nil {
					err = bad
					break
				}
			}
		}
		return nil, errors.Join(err, g.Close())
	}
	return g, g.ready()
}

// openTries is how often Open begins again where a Writer replaces the files.
const openTries = 3

func newGallery(path string) *Gallery {
	return &Gallery{Path: path, tables: map[string]*table{}, names: map[string]*lines{}, views: map[string]*View{}}
}

// ready checks the files of a gallery that is open, and closes it where it cannot be used.
func (g *Gallery) ready() error {
	if err := g.startChecks(); err != nil {
		return errors.Join(err, g.Close())
	}
	for _, side := range []string{Image, Text} {
		if t := g.tables[side]; t != nil && t.Rows() > 0 {
			g.sides = append(g.sides, side)
		}
	}
	if len(g.sides) == 0 {
		return errors.Join(fmt.Errorf("gallery: %s has no rows: embed something first", g.Path), g.Close())
	}
	return nil
}

func (g *Gallery) open() error {
	st, err := os.Stat(g.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("gallery: %w: give a folder that embed wrote, or a file of features", err)
	}
	if err != nil {
		return fmt.Errorf("gallery: %w", err)
	}
	if !st.IsDir() {
		return g.openFile(st)
	}
	g.index = indexBase(g.Path, 0)
	m, err := ReadManifest(g.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return g.openSplit()
	}
	if err != nil {
		return err
	}
	g.generation = m.Generation
	if err := g.openShards(m); err != nil || m.Generation == 0 {
		return err
	}
	return g.replay(m)
}

// openFile opens a file of features.
func (g *Gallery) openFile(st fs.FileInfo) error {
	c := Check{Path: g.Path, Bytes: -1, own: true, cure: "copy it again, or compute its features again"}
	of := fmt.Sprint(g.Path, identity.StampOfInfo(st))
	if strings.EqualFold(filepath.Ext(g.Path), ".safetensors") {
		f, err := safetensors.Open(g.Path)
		if err != nil {
			return fmt.Errorf("gallery: %w", err)
		}
		if c.Sum = f.Metadata()[safetensors.SumKey]; c.Sum != "" {
			of = c.Sum
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	g.checks = []Check{c}
	g.index, g.ID = g.Path, checksum(of)
	return g.addTensor(Image, g.Path, "", -1)
}

// openShards opens what a manifest lists.
func (g *Gallery) openShards(m *Manifest) error {
	g.checks = m.Checks(g.Path)
	if !m.Complete {
		return fmt.Errorf("gallery: %s is not complete, it has %d rows so far: run the same embed again, which goes on with the missing shards", g.Path, m.Rows)
	}
	g.Meta, g.Root, g.index = m.Meta, m.Root, indexBase(g.Path, m.Generation)
	sums := []string{m.Model, m.Score, m.Root}
	if m.LeadingOf > 0 {
		sums = append(sums, strconv.Itoa(m.LeadingOf))
	}
	for _, s := range m.Shards {
		sums = append(sums, s.FeaturesSum, s.NamesSum)
		if s.Rows == 0 {
			continue
		}
		path := filepath.Join(g.Path, s.Features)
		if st, err := os.Stat(path); err != nil || st.Size() != s.FeaturesBytes {
			return fmt.Errorf("gallery: %s is missing or was cut: run the same embed again, which makes it anew", path)
		}
		if err := g.addFile(path, m.Side, s.Rows); err != nil {
			return err
		}
		if s.Names != "" {
			if err := g.addNames(m.Side, s.Names, s.Rows); err != nil {
				return err
			}
		}
	}
	g.ID = checksum(sums...)
	return nil
}

// openSplit opens the files of a split.
func (g *Gallery) openSplit() error {
	path := filepath.Join(g.Path, FeaturesFile)
	f, err := safetensors.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("gallery: %s has neither %s nor %s: give a folder that embed wrote, or a file of features",
			g.Path, FeaturesFile, ManifestFile)
	}
	if err != nil {
		return fmt.Errorf("gallery: %w", err)
	}
	meta := f.Metadata()
	const again = "embed the split again"
	g.checks = []Check{{Path: path, Sum: meta[safetensors.SumKey], Bytes: -1, own: true, cure: again}}
	g.Meta = Meta{Model: meta["model"], Score: meta["score"], EvalScore: meta["eval_score"], Space: meta["space"],
		Split: meta["split"], Product: meta["product"] == "true", Alike: meta["alike"] == "true",
		Twin:    meta["twin"] == "true",
		Weights: meta["weights"], Reading: meta["reading"]}
	g.Meta.Step, _ = strconv.Atoi(meta["step"])
	g.Meta.LeadingOf, _ = strconv.Atoi(meta["leading_of"])
	_, images := f.Lookup(Image)
	_, texts := f.Lookup(Text)
	st, err := os.Stat(path)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	g.ID = checksum(fmt.Sprint(meta)) // with the sums of all files
	if meta[safetensors.SumKey] == "" {
		g.ID = checksum(fmt.Sprint(meta, identity.StampOfInfo(st)))
	}
	for _, x := range []struct {
		side, names string
		there       bool
	}{{Image, ImagesFile, images}, {Text, TextsFile, texts}} {
		if !x.there {
			continue
		}
		names := Check{Path: filepath.Join(g.Path, x.names), Sum: meta[SumOf(x.names)], Bytes: -1, where: FeaturesFile,
			cure: again}
		if names.Sum != "" || isThere(names.Path) { // stored features have no captions
			g.checks = append(g.checks, names)
		}
		if err := g.addFile(path, x.side, -1); err != nil {
			return err
		}
		if isThere(names.Path) {
			if err := g.addNames(x.side, x.names, g.tables[x.side].Rows()); err != nil {
				return err
			}
		}
	}
	return nil
}

// SumOf is the key of the metadata of FeaturesFile that has the CRC-32C of a file of names.
func SumOf(names string) string { return names + " " + safetensors.SumKey }

// checksum returns that of some texts.
func checksum(texts ...string) string {
	return fmt.Sprintf("%08x", crc32.Checksum([]byte(strings.Join(texts, "\x00")), castagnoli))
}

// addFile opens the tensors of a side in a file of rows rows, of any number with -1.
func (g *Gallery) addFile(path, side string, rows int) error {
	if err := g.addTensor(side, path, side, rows); err != nil || side == Text {
		return err
	}
	f, err := safetensors.Open(path)
	if err != nil {
		return err
	}
	_, both := f.Lookup(imageFeatures)
	if err := f.Close(); err != nil || !both {
		return err
	}
	return g.addTensor(imageFeatures, path, imageFeatures, rows)
}

// addTensor opens a tensor of a file; an empty one is its only one.
func (g *Gallery) addTensor(name, path, tensor string, rows int) error {
	m, err := features.OpenMatrix(path, tensor)
	if err != nil {
		return err
	}
	if rows >= 0 && m.Rows() != rows {
		return errors.Join(fmt.Errorf("gallery: %s has %d rows, not %d: embed again", path, m.Rows(), rows), m.Close())
	}
	t := g.tables[name]
	if t == nil {
		t = &table{}
		g.tables[name] = t
	}
	if err := t.add(m); err != nil {
		return errors.Join(err, m.Close())
	}
	return nil
}

// addNames opens a file of names.
func (g *Gallery) addNames(side, name string, rows int) error {
	if g.names[side] == nil {
		g.names[side] = &lines{}
	}
	return g.names[side].add(filepath.Join(g.Path, name), rows)
}

// Sides returns the sides that have rows, images first.
func (g *Gallery) Sides() []string { return g.sides }

// Rows returns N of a side: rows have the numbers below it, those that were put since and those that were deleted too.
func (g *Gallery) Rows(side string) int {
	if l := g.liveOf(side); l != nil {
		return l.rows
	}
	return g.baseRows(side)
}

// baseRows is Rows of the files.
func (g *Gallery) baseRows(side string) int {
	if t := g.tables[side]; t != nil {
		return t.Rows()
	}
	return 0
}

// Dim returns C.
func (g *Gallery) Dim() int { return g.tables[g.sides[0]].Width() }

// Channels returns numbers of a feature as the rows of the gallery have them: C as they are, and those of all channels of
// the model truncated as its rows were.
func (g *Gallery) Channels(x []float32) ([]float32, error) {
	c, whole := g.Dim(), g.Meta.LeadingOf
	switch {
	case len(x) == c:
		return x, nil
	case whole == 0:
		return nil, fmt.Errorf("has %d numbers, the rows of the gallery have %d", len(x), c)
	case len(x) != whole:
		return nil, fmt.Errorf("has %d numbers, the rows of the gallery have the first %d of %d", len(x), c, whole)
	}
	s, err := space.Parse(cmp.Or(g.Meta.Space, "sphere"), whole)
	if err == nil {
		s, err = s.Leading(c)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot be truncated: the space %s of the gallery %w", g.Meta.Space, err)
	}
	return s.Truncate(nil, x, whole), nil
}

// Row returns the features of row i of a side (C), as they are compared with rows of the same
// side.
func (g *Gallery) Row(side string, i int) ([]float32, error) {
	t := g.tables[g.own(side)]
	if t == nil {
		return nil, fmt.Errorf("gallery: %s has no rows of the side %q: it has %s", g.Path, side,
			strings.Join(g.sides, " and "))
	}
	x := make([]float32, t.Width())
	if l := g.liveOf(side); l != nil {
		return x, l.pool(t, g.own(side)).Row(i, x)
	}
	return x, t.Row(i, x)
}

// own returns the tensor by which rows of a side are compared with each other.
func (g *Gallery) own(side string) string {
	if side == Image && g.tables[imageFeatures] != nil {
		return imageFeatures
	}
	return side
}

// Checkpoint returns the step folder, or the stored weights, of the model that made the features: where the gallery
// says, or in the run folder that the gallery lies in.
func (g *Gallery) Checkpoint() (string, error) {
	model := g.Meta.Model
	if model == "" {
		return "", fmt.Errorf("gallery: %s does not say of what model it is: name one with --checkpoint, or query by a row or a vector", g.Path)
	}
	for _, path := range []string{model, filepath.Join(g.Path, "..", filepath.Base(filepath.Dir(model)),
		filepath.Base(model))} {
		if isThere(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("gallery: %s was made with %s, which is not there: name a copy with --checkpoint, or query by a row or a vector", g.Path, model)
}

// Close gives all files back.
func (g *Gallery) Close() (err error) {
	if g.stopChecks != nil {
		g.stopChecks()
	}
	for _, v := range g.views {
		err = errors.Join(err, v.close())
	}
	for _, t := range g.tables {
		err = errors.Join(err, t.Close())
	}
	for _, l := range g.names {
		err = errors.Join(err, l.Close())
	}
	return err
}
