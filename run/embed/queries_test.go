package embed

import (
	"github.com/geoalign/geoalign/run"
	"strings"
	"testing"
)

func TestOpenQueriesOfNoGallery(t *testing.T) {
	if _, err := OpenQueries(nil, "", run.OpenOptions{}); err == nil || !strings.Contains(err.Error(), "needs a gallery") {
		t.Errorf("got %v", err)
	}
}
