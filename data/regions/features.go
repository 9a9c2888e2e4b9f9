package regions

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Features are the regions of N images in files. Methods may be called from several goroutines.
type Features interface {
	Len() int    // N
	Most() int   // R, most regions of an image
	Width() int  // D
	Boxed() bool // whether boxes of regions are known
	// Keys names the images, nil where the file does not: they are in the order of the captions then.
	Keys() []string
	// Read reads the first regions of image i: their features (rows of D numbers) and boxes (rows of 4,
	// see batch.RegionBoxes), as many as there is room for, and sets what is left to zero. boxes may be nil. It
	// returns how many it read, 0 for an image without regions and with an error, which names file and image.
	Read(i int, features, boxes []float32) (int, error)
	Close() error
}

// OpenFeatures opens a file of regions:
//
//	.npy, .npz, .pt   an array (N, R, D) of float16 or float32
//	.safetensors      such an array, named features unless tensor says, beside it boxes (N, R, 4) and lengths (N)
//	                  where there are any; or a tensor (R, D) for each image, named by it, and NAME/boxes (R, 4)
//	.tsv              the table of bottom-up attention: image_id, image_w, image_h, num_boxes, boxes, features
//
// boxes names the array of the boxes in a file of its own, empty for none. Regions of zeros at the end of an image
// are padding, unless there are lengths. Close it after use.
func OpenFeatures(path, tensor, boxes string) (Features, error) {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".npy", ".npz", ".pt", ".pth":
		return openArray(path, tensor, boxes)
	case ".safetensors":
		return openTensors(path, tensor, boxes)
	case ".tsv":
		if boxes != "" {
			return nil, fmt.Errorf("regions: %s has boxes of its own: name no other file (got %s)", path, boxes)
		}
		return openTable(path)
	default:
		return nil, fmt.Errorf(
			"regions: %s: a file of regions must end in .npy, .npz, .pt, .safetensors or .tsv (got %q)", path, ext)
	}
}

// BoxError says that a region does not lie in its image.
type BoxError struct {
	Path       string
	Row        int // of the image
	Region     int
	Box        [4]float32
	Normalized bool // boxes are shares of the image in the file
}

// Error names the region.
func (e *BoxError) Error() string {
	cure := "its columns must be left, top, right, bottom in pixels"
	if e.Normalized {
		cure = "write left, top, right, bottom as shares of width and height, from 0 to 1"
	}
	return fmt.Sprintf("regions: %s: row %d: region %d has the box %v: %s", e.Path, e.Row, e.Region, e.Box, cure)
}

// boxSlack is how far a box may lie outside of its image or be turned over, in shares of it: rounding.
const boxSlack = 0.01

// checkBoxes clips boxes (n, 4) to the image; one that is not in it, or turned over, is a *BoxError.
func checkBoxes(boxes []float32, wrong BoxError) error {
	for k := 0; k+4 <= len(boxes); k += 4 {
		b := boxes[k : k+4]
		for _, v := range b {
			if !(v >= -boxSlack && v <= 1+boxSlack) {
				wrong.Region, wrong.Box = k/4, [4]float32(b)
				return &wrong
			}
		}
		if b[0] > b[2]+boxSlack || b[1] > b[3]+boxSlack {
			wrong.Region, wrong.Box = k/4, [4]float32(b)
			return &wrong
		}
		for j := range b {
			b[j] = min(max(b[j], 0), 1)
		}
	}
	return nil
}

// checkFinite names the first number that is not finite.
func checkFinite(x []float32, path string, row, width int) error {
	for i, v := range x {
		if v-v != 0 { // NaN or an infinity
			return fmt.Errorf("regions: %s: row %d: feature %d of region %d is not finite (got %v): compute the image "+
				"again or remove it", path, row, i%width, i/width, v)
		}
	}
	return nil
}
