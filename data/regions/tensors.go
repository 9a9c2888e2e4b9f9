package regions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/internal/words"
)

// Names of tensors in a file of one array.
const (
	featuresName = "features"
	boxesName    = "boxes"
	lengthsName  = "lengths"
	boxesSuffix  = "/boxes" // of the boxes of an image that has a tensor
)

// openTensors opens a safetensors file of one array, or of a tensor for each image.
func openTensors(path, tensor, boxes string) (_ Features, err error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, fmt.Errorf("regions: %w", err)
	}
	name := tensor
	if name == "" {
		name = featuresName
	}
	info, ok := f.Lookup(name)
	if tensor == "" && (!ok || len(info.Shape) != 3) {
		if boxes != "" {
			f.Close()
			return nil, fmt.Errorf("regions: %s has a tensor for each image: store the boxes of image NAME beside it "+
				"as NAME%s, instead of %s", path, boxesSuffix, boxes)
		}
		return newTensors(path, f)
	}
	defer f.Close()
	lengths, err := lengthsTensor(f)
	if err != nil {
		return nil, fmt.Errorf("regions: %s: %w", path, err)
	}
	boxTensor := ""
	if _, ok := f.Lookup(boxesName); ok && boxes == "" {
		boxes, boxTensor = path, boxesName
	}
	return newArray(path, name, boxes, boxTensor, lengths)
}

// tensors is regions as a tensor (R, D) for each image.
type tensors struct {
	path        string
	file        *safetensors.File
	keys        []string // in natural order
	lengths     []int
	boxed       bool
	most, width int
}

func newTensors(path string, f *safetensors.File) (_ Features, err error) {
	t := &tensors{path: path, file: f}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	boxes := 0
	for _, x := range f.Tensors() {
		if strings.HasSuffix(x.Name, boxesSuffix) {
			boxes++
			continue
		}
		t.keys = append(t.keys, x.Name)
	}
	if t.keys == nil {
		return nil, fmt.Errorf("regions: %s has no tensor of regions: write one array (N, R, D) named %s, or a tensor "+
			"(R, D) for each image", path, featuresName)
	}
	slices.SortFunc(t.keys, words.Natural)
	if t.boxed = boxes > 0; t.boxed && boxes != len(t.keys) {
		return nil, fmt.Errorf("regions: %s has boxes for %d of its %d images: give all of them, or none", path, boxes,
			len(t.keys))
	}
	for _, name := range t.keys {
		x, _ := f.Lookup(name)
		if len(x.Shape) != 2 {
			return nil, fmt.Errorf("regions: %s: tensor %q has the shape %v: want (R, D), a row for each region of "+
				"the image", path, name, x.Shape)
		}
		if x.Shape[0] > 0 { // an image may have none
			if t.width == 0 {
				t.width = x.Shape[1]
			}
			if x.Shape[1] != t.width || t.width == 0 {
				return nil, fmt.Errorf("regions: %s: tensor %q has %d features for a region, and others %d: all must "+
					"have one width, above 0", path, name, x.Shape[1], t.width)
			}
		}
		if b, ok := f.Lookup(name + boxesSuffix); t.boxed && (!ok || !slices.Equal(b.Shape, []int{x.Shape[0], 4})) {
			return nil, fmt.Errorf("regions: %s: tensor %q must have the shape [%d 4]: a box for each region", path,
				name+boxesSuffix, x.Shape[0])
		}
		t.lengths = append(t.lengths, x.Shape[0])
		t.most = max(t.most, x.Shape[0])
	}
	if t.most == 0 {
		return nil, fmt.Errorf("regions: %s: no image has a region", path)
	}
	return t, nil
}

func (t *tensors) Len() int       { return len(t.keys) }
func (t *tensors) Most() int      { return t.most }
func (t *tensors) Width() int     { return t.width }
func (t *tensors) Boxed() bool    { return t.boxed }
func (t *tensors) Keys() []string { return t.keys }

func (t *tensors) Read(i int, features, boxes []float32) (int, error) {
	n := min(t.lengths[i], len(features)/t.width)
	if err := t.read(t.keys[i], features[:n*t.width], t.lengths[i]*t.width); err != nil {
		return 0, err
	}
	clear(features[n*t.width:])
	if err := checkFinite(features[:n*t.width], t.path, i, t.width); err != nil {
		return 0, err
	}
	clear(boxes)
	if boxes == nil || !t.boxed {
		return n, nil
	}
	if err := t.read(t.keys[i]+boxesSuffix, boxes[:4*n], 4*t.lengths[i]); err != nil {
		return 0, err
	}
	if err := checkBoxes(boxes[:4*n], BoxError{Path: t.path, Row: i, Normalized: true}); err != nil {
		return 0, err
	}
	return n, nil
}

// read reads the begin of a tensor of n numbers.
func (t *tensors) read(name string, dst []float32, n int) error {
	if n == 0 {
		return nil
	}
	all := dst
	if len(dst) < n {
		all = make([]float32, n)
	}
	if err := t.file.ReadFloat32(name, all); err != nil {
		return fmt.Errorf("regions: %s: %w", t.path, err)
	}
	copy(dst, all)
	return nil
}

func (t *tensors) Close() error { return t.file.Close() }
