package weights

import (
	"fmt"
	"io"

	"github.com/geoalign/geoalign/internal/safetensors"
)

// pieceLen is the most bytes that are read at a time.
const pieceLen = 256 << 10

// Read converts len(dst) elements of the tensor, in the order of its indices, from element from on. Types that are
// no floats are an error: F64, F32, F16 and BF16 are read.
func (t *Tensor) Read(dst []float32, from int) error {
	if from < 0 || len(dst) > t.Len()-from {
		return fmt.Errorf("weights: %s: elements %d to %d of tensor %q, which has shape %v", t.file.path, from,
			from+len(dst), t.Name, t.Shape)
	}
	if err := t.stored(dst, from); err != nil || t.adapter == nil {
		return err
	}
	t.adapter.add(dst, from, t.Shape[1])
	return nil
}

// stored is Read without an adapter.
func (t *Tensor) stored(dst []float32, from int) error {
	d := safetensors.DType(t.DType)
	floats, err := safetensors.Floats(d)
	if err != nil {
		return fmt.Errorf("weights: %s: tensor %q has numbers of type %s, and F64, F32, F16 and BF16 are read: save it as one of these", t.file.path, t.Name, t.DType)
	}
	if t.strides != nil {
		return t.gather(dst, from, floats)
	}
	size := d.Size()
	buf := make([]byte, min(pieceLen, len(dst)*size))
	for offset := t.offset + int64(from)*int64(size); len(dst) > 0; {
		n := min(len(dst), len(buf)/size)
		if err := t.bytes(buf[:n*size], offset); err != nil {
			return err
		}
		floats(dst[:n], buf)
		dst, offset = dst[n:], offset+int64(n*size)
	}
	return nil
}

// gather is Read for elements that do not lie together, such as those of a transposed matrix: they are
// read as they lie and then picked, so for a while the tensor is in memory twice. Few files have any.
func (t *Tensor) gather(dst []float32, from int, floats func([]float32, []byte)) error {
	if t.Len() == 0 {
		return nil
	}
	last := 0
	for i, n := range t.Shape {
		last += (n - 1) * t.strides[i]
	}
	if last > maxGather {
		return fmt.Errorf("weights: %s: tensor %q of shape %v is spread over %d elements: torch.save x.contiguous()",
			t.file.path, t.Name, t.Shape, last+1)
	}
	whole := &Tensor{Name: t.Name, Shape: []int{last + 1}, DType: t.DType, file: t.file, offset: t.offset}
	all := make([]float32, last+1)
	if err := whole.Read(all, 0); err != nil {
		return err
	}
	for i := range dst {
		at, rest := 0, from+i
		for axis := len(t.Shape) - 1; axis >= 0; axis-- {
			at += rest % t.Shape[axis] * t.strides[axis]
			rest /= t.Shape[axis]
		}
		dst[i] = all[at]
	}
	return nil
}

// maxGather is the most elements that the elements of a tensor may be spread over.
const maxGather = 1 << 30

// bytes fills b with the bytes of the file from offset on.
func (t *Tensor) bytes(b []byte, offset int64) error {
	if n, err := t.file.r.ReadAt(b, offset); n < len(b) {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("weights: %s: read tensor %q: %w", t.file.path, t.Name, err)
	}
	return nil
}
