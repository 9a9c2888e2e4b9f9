package main

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"sync"

	protocol "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	heat "github.com/geoalign/geoalign/explain"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/embed"
	"github.com/geoalign/geoalign/run/explain"
	"github.com/geoalign/geoalign/serve"
	"github.com/geoalign/geoalign/serve/mcp"
)

// serveMCP answers the program that started this one, over standard input and output.
func (f *serveFlags) serveMCP(c *cobra.Command, o serve.Options) error {
	s, err := serve.New(c.Context(), o)
	if err != nil {
		return err
	}
	defer s.Close()
	tools, done := mcpTools(s, opening(c, &f.config, true))
	defer done()
	return tools.Serve(c.Context(), &protocol.StdioTransport{})
}

// mcpTools are those of a server whose gallery stays; a model that explains is opened with o. done is called at the end.
func mcpTools(s *serve.Server, o run.OpenOptions) (t mcp.Tools, done func()) {
	t, src := mcp.Tools{Server: s.Handler(), Version: version()}, s.Source()
	q, ok := src.Encoder.(*embed.Queries)
	if !ok || src.Picture == nil || explain.Explainable(q.Config) != nil {
		return t, func() {}
	}
	x := &explainer{open: func() (*run.Trained, error) { return run.Open(q.Checkpoint.Path, o) }, source: src}
	t.Explain = x.explain
	return t, x.close
}

// explainer explains rows of a gallery by a model of its own, which is opened for the first one: that of the searches
// may be in use.
type explainer struct {
	mu     sync.Mutex
	open   func() (*run.Trained, error)
	model  *run.Trained // nil before the first
	source *serve.Source
}

// close gives the model back.
func (x *explainer) close() {
	if x.model != nil {
		x.model.Close()
	}
}

// explain is mcp.Tools.Explain.
func (x *explainer) explain(ctx context.Context, row int, text string) (*mcp.Explanation, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := x.source.Gallery.Rows(x.source.Side); row < 0 || row >= n {
		return nil, fmt.Errorf("row must be 0 to %d (got %d)", n-1, row)
	}
	m, err := x.source.Picture(row)
	if err != nil {
		return nil, err
	}
	if x.model == nil {
		if x.model, err = x.open(); err != nil {
			return nil, err
		}
	}
	e, err := explain.Score(ctx, x.model, explain.Options{Picture: m, Text: text})
	if err != nil {
		return nil, err
	}
	pair := e.Scores[0]
	out := &mcp.Explanation{Score: pair.Score}
	for i, share := range heat.Shares(pair.Words) {
		if w := pair.Words[i]; !w.Special {
			out.Words = append(out.Words, mcp.Word{Text: w.Text, Share: share})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, e.Heat(pair)); err != nil {
		return nil, err
	}
	out.Heat = b.Bytes()
	return out, nil
}
