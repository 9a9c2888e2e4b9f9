package embed

import (
	"strings"
	"testing"

	"github.com/geoalign/geoalign/run"
)

func TestOpenQueriesOfNoGallery(t *testing.T) {
	if _, err := OpenQueries(nil, "", run.OpenOptions{}); err == nil || !strings.Contains(err.Error(), "needs a gallery") {
		t.Errorf("got %v", err)
	}
}
