package contrast

import (
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

func TestCrossEntropyGolden(t *testing.T) {
	for name, c := range optest.TorchCases(t, "crossentropy.json") {
		t.Run(name, func(t *testing.T) {
			c.Check(t, 1e-6, func(get func(string) *gorgonia.Node) *gorgonia.Node {
				return CrossEntropy(CrossEntropyArgs{
					Logits: get("logits"), Labels: get("labels"), RowIDs: get("rowIDs"), ColIDs: get("colIDs"),
					Teacher: get("teacher"), Alpha: get("alpha"), Cols: get("cols"),
				})
			}, map[string]string{"logits": "dlogits"})
		})
	}
}
