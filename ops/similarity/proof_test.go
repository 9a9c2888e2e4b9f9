package similarity

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
)

func TestCases(t *testing.T) {
	optest.CheckCases(t, slices.Concat(productCases(), distanceCases(), metricCases(), columnCases(), pairNetCases(), rowCases()))
}
