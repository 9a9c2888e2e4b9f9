package train

import (
	"path"
	"slices"
	"testing"
)

// Without gradients an update is weight decay alone. As in ALBEF's code it spares biases and
// what has one axis, but not the class token, which has three there; and by our default the
// temperature.
func TestWhatDecays(t *testing.T) {
	s := small(t, 0, 0)
	p := s.pairs().Params()
	for i := range p.Values() {
		p.Values()[i] = 1
	}
	clear(p.Grads())
	s.optimizer.Step(.5, 1, 0)
	for _, q := range p.List() {
		parent, name := path.Split(q.Name)
		spared := name == "bias" || slices.Contains([]string{"norm", "norm1", "norm2"}, path.Base(parent)) || q.Name == "temperature"
		if stays := p.Value(q)[0] == 1; stays != spared {
			t.Errorf("%s %v: stays as it is %t, want %t", q.Name, q.Shape, stays, spared)
		}
	}
}
