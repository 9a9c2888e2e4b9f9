package contrast

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
)

func TestCases(t *testing.T) {
	optest.CheckCases(t, slices.Concat(lossCases(), tiledCases(), hostCases(), sinkhornCases(), sigmoidCases(), pairLossCases(), tripletCases(), marginCases()))
}
