package run

import (
	"strings"
	"testing"
)

func TestOpenQueriesOfNoGallery(t *testing.T) {
	if _, err := OpenQueries(nil, "", OpenOptions{}); err == nil || !strings.Contains(err.Error(), "needs a gallery") {
		t.Errorf("got %v", err)
	}
}
