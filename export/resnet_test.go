package export_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/export"
	"github.com/geoalign/geoalign/export/exporttest"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/weights"
)

// A residual network of the published width becomes one of timm, with torchvision's names, and is read back.
func TestTimmResNet(t *testing.T) {
	x := exporttest.New(t, exporttest.Find(t, "resnet", "model.image.resnet.width=64"))
	w := written(t, x, export.Options{To: export.Timm})
	if w.Class != "ResNet" || w.Tensors != 100 || !strings.Contains(strings.Join(w.Notes, " "), "resnet18().load_state_dict(") {
		t.Errorf("%s of %d tensors, %v", w.Class, w.Tensors, w.Notes)
	}
	m := check.Get(weights.Open(w.Path))(t)
	defer m.Close()
	if m.Family != "resnet" || len(m.Names()) != 100 {
		t.Errorf("%s of %d parameters", m.Family, len(m.Names()))
	}
	for _, p := range x.Params {
		if !strings.HasPrefix(p.Name, "image/") {
			continue
		}
		want := numbers(t, p)
		got := make([]float32, len(want))
		if err := m.Read(p.Name, p.Shape, got); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%s is another: %v", p.Name, err)
		}
	}
}
