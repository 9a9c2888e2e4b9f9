package main

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/serve"
)

// TestServeMCP: the tools of a gallery of a run explain its rows by a model of their own, and --mcp listens nowhere.
func TestServeMCP(t *testing.T) {
	dir := t.TempDir()
	must(t, exitDone, tinyArgs(dir, "--quiet", "--max-steps", "2")...)
	must(t, exitDone, "embed", "--checkpoint", dir, "--split", "test", "--quiet")
	gallery := filepath.Join(dir, "embeddings-test")
	_, says := must(t, exitUsage, "serve", gallery, "--mcp", "--public")
	contains(t, says, "--mcp and --public do not go together")

	s := check.Get(serve.New(t.Context(), serve.Options{Open: func(ctx context.Context) (*serve.Source, error) {
		return serve.Open(ctx, gallery, serve.OpenOptions{})
	}}))(t)
	defer s.Close()
	tools, done := mcpTools(s, run.OpenOptions{})
	defer done()
	for range 2 { // the model stays
		e := check.Get(tools.Explain(t.Context(), 1, "a red circle"))(t)
		sum := 0.0
		for _, w := range e.Words {
			sum += w.Share
		}
		if len(e.Words) != 3 || sum < 0.999 || sum > 1.001 || string(e.Heat[1:4]) != "PNG" {
			t.Errorf("%+v, shares of %v", e.Words, sum)
		}
	}
	_, err := tools.Explain(t.Context(), -1, "a red circle")
	check.Error(t, err, "row must be 0 to")
}
