package features

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/torch"
)

// openTorch finds a tensor of a file of torch.save.
func (m *Matrix) openTorch(name string) error {
	t, err := torchTensor(m.path, name)
	if err != nil {
		return err
	}
	if !t.Contiguous() {
		return fmt.Errorf("its rows do not lie together (strides %v): torch.save x.contiguous()", t.Strides)
	}
	m.dtype, m.start = t.DType, t.Offset
	shape := t.Shape
	if m.rowIsMatrix && len(shape) == 1 {
		shape = []int{1, shape[0]}
	}
	if err := m.setShape(shape); err != nil {
		return err
	}
	m.file, _, err = files.Open(m.path, 0)
	return err
}

// torchTensor returns the tensor of a name, or the only one.
func torchTensor(path, name string) (torch.Tensor, error) {
	f, err := torch.Open(path)
	if err != nil {
		return torch.Tensor{}, err
	}
	defer f.Close()
	var names []string
	for _, t := range f.Tensors() {
		names = append(names, t.Name)
	}
	if name, err = choose(name, names); err != nil {
		return torch.Tensor{}, err
	}
	t, _ := f.Lookup(name)
	return t, nil
}
