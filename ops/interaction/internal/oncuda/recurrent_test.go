package oncuda

import (
	"testing"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/tensor"
)

// TestRecurrentRoom: the memory of a step does not grow with the contexts, also where there is one short query.
func TestRecurrentRoom(t *testing.T) {
	room := func(images int, bf16 bool) int64 {
		sides := [2]Side{{Lengths: -1, Len: 576}, {Lengths: -1, Len: 14}}
		x := &Recurrent{
			Cross:  Cross{Sides: sides, Query: textSide, Rows: 2, Of: [6]int{0, 1}, Sites: [2][2]int{{0, 1}, {0, 1}}},
			Weight: 2, Steps: 3,
		}
		c := &exec.DeviceCall{BF16: bf16}
		for _, shape := range []tensor.Shape{{images * 576, 1024}, {14, 1024}, {2048, 2048}, {2048}} {
			c.In = append(c.In, exec.Operand{Spec: exec.Spec{Shape: shape, Type: cuda.ProductType(c)}})
		}
		b := x.beginSteps(c, true)
		before := cuda.NewRoom(c, b.parts...).Bytes // the operands as products read them
		return b.room.Bytes - before
	}
	for _, bf16 := range []bool{false, true} {
		if few, many := room(50, bf16), room(600, bf16); many != few || many > 512<<20 {
			t.Errorf("bf16 %v: %d MB for 50 images, %d MB for 600, want as many and at most 512", bf16, few>>20, many>>20)
		}
	}
}
