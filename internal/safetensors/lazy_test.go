package safetensors

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// Data that is made when it is written lies in the file as data that is there.
func TestLazy(t *testing.T) {
	x := []float32{1, -2, 3, 4.5, 0, 7}
	file := func(data any) []byte {
		var b bytes.Buffer
		check.OK(t, Write(&b, []Tensor{{Name: "a", Shape: []int{2, 3}, Data: data}}, nil))
		return b.Bytes()
	}
	fill := func(dst []float32) error { copy(dst, x); return nil }
	if !bytes.Equal(file(Lazy{6, fill}), file(x)) {
		t.Error("another file")
	}
	gone := errors.New("gone")
	for want, data := range map[string]Lazy{
		"gone":                              {6, func([]float32) error { return gone }},
		"shape [2 3] needs 6 elements (got": {5, fill},
	} {
		if err := Write(&bytes.Buffer{}, []Tensor{{Name: "a", Shape: []int{2, 3}, Data: data}}, nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
