package embed

import (
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/run"
)

func TestOpenQueriesOfNoGallery(t *testing.T) {
	check.Fails(OpenQueries(nil, "", run.OpenOptions{}))(t, "needs a gallery")
}
