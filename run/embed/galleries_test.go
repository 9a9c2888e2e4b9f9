package embed

import (
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/check"
)

// TestReadAs: what reading says is taken back, and nothing else is set by a gallery.
func TestReadAs(t *testing.T) {
	for _, clean := range []string{data.CleanALBEF, data.CleanNone} {
		cfg := config.Default()
		cfg.Data.Clean, cfg.Data.MaxWords, cfg.Data.Tokens = clean, 7, 9
		sets := check.Get(readAs(reading(cfg)))(t)
		back, err := config.Parse("", nil, sets)
		if err != nil || back.Data.Clean != clean || back.Data.Tokens != 9 || clean == data.CleanALBEF && back.Data.MaxWords != 7 {
			t.Errorf("%q sets %+v (%v)", sets, back.Data, err)
		}
	}
	if sets, err := readAs(""); err != nil || sets != nil {
		t.Errorf("%q, %v of nothing", sets, err)
	}
	for _, s := range []string{"data.clean=none,init.checkpoint=/x", "data.tokens2=3", ","} {
		if sets, err := readAs(s); err == nil {
			t.Errorf("%q sets %q", s, sets)
		}
	}
}
