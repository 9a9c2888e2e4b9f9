package search

import (
	"encoding/json"
	"fmt"
	"io"
	"unsafe"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// An index's file is a safetensors file, which other programs can read: the tensors of Index and
// two strings in the metadata, the header and the checksum of the whole file with zeros in place
// of the checksum's digits.
const (
	headerKey = "geoalign.search"
	sumKey    = safetensors.SumKey
)

// Beside returns the file of the index of a file of features: it has the same name with .search
// behind.
func Beside(features string) string { return features + ".search" }

// tensors lists what is in the file.
func (x *Index) tensors() []safetensors.Tensor {
	h := &x.header
	t := []safetensors.Tensor{
		{Name: "centres", Shape: []int{h.Cells, h.Width}, Data: x.centres},
		{Name: "starts", Shape: []int{h.Cells + 1}, Data: x.starts},
		{Name: "rows", Shape: []int{h.Rows}, Data: x.rows},
		{Name: "scales", Shape: []int{h.Rows}, Data: x.scales},
	}
	if h.Metric == L2 {
		t = append(t, safetensors.Tensor{Name: "half", Shape: []int{h.Rows}, Data: x.half},
			safetensors.Tensor{Name: "shift", Shape: []int{h.Width}, Data: x.shift})
	}
	if h.bits() {
		t = append(t, safetensors.Tensor{Name: "bits", Shape: []int{h.Rows, bitWidth(h.Width)}, Data: x.bits})
	} else {
		t = append(t, safetensors.Tensor{Name: "codes", Shape: []int{h.Rows, x.width}, Data: unsafe.Slice(
			(*uint8)(unsafe.Pointer(unsafe.SliceData(x.codes))), len(x.codes))}) // two's complement
	}
	n := blocks(h.Rows)
	sums := make([]uint8, 0, n*len(identity.Sum{}))
	for _, s := range x.sums {
		sums = append(sums, s[:]...)
	}
	return append(t, safetensors.Tensor{Name: "sums", Shape: []int{n, len(identity.Sum{})}, Data: sums})
}

// Save writes the index to a file, which replaces an older one only when it is complete.
func (x *Index) Save(path string) error {
	if err := x.save(path); err != nil {
		return fmt.Errorf("search: save the index: %w", err)
	}
	return nil
}

func (x *Index) save(path string) (err error) {
	text, err := json.Marshal(x.header)
	if err != nil {
		return err
	}
	meta := map[string]string{headerKey: string(text)}
	return files.ReplaceFrom(path, func(w io.Writer) error { return safetensors.WriteSummed(w, x.tensors(), meta) })
}
