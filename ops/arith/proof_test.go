package arith

import (
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
)

func TestCases(t *testing.T) { optest.CheckCases(t, arithCases()) }
