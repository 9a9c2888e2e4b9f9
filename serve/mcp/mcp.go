// Package mcp lets programs with language models search a gallery: it answers over the Model Context Protocol
// (https://modelcontextprotocol.io) by asking a server of package serve within the same process.
package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	protocol "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/geoalign/geoalign/serve/client"
)

// Explanation says what the score of an image and a text rests on.
type Explanation struct {
	Score float64 `json:"score"` // of the pair, before any temperature
	Words []Word  `json:"words"`
	Heat  []byte  `json:"-"` // PNG of the image, bright where it matters for the score
}

// Word is a word of the text with its share of what words add to the score, 0 to 1.
type Word struct {
	Text  string  `json:"text"`
	Share float64 `json:"share"`
}

// Tools are what a program may call.
type Tools struct {
	// Server answers searches and thumbnails, see serve.Server.Handler.
	Server http.Handler
	// Explain explains the score of the image of a row and a text; nil: there is no such tool.
	Explain func(ctx context.Context, row int, text string) (*Explanation, error)
	Version string // of this program
}

// searchInput is what the tool search is asked.
type searchInput struct {
	Text     string         `json:"text,omitempty" jsonschema:"what to look for, in words like those of captions"`
	Row      *int           `json:"row,omitempty" jsonschema:"instead of text: look for what is like this row of the gallery"`
	K        int            `json:"k,omitempty" jsonschema:"hits to return; 10 if left out"`
	Filter   map[string]any `json:"filter,omitempty" jsonschema:"condition on payload fields, such as {\"year\": {\"gte\": 2020}}"`
	MinScore *float64       `json:"min_score,omitempty" jsonschema:"leave out hits below this score"`
	Pictures bool           `json:"pictures,omitempty" jsonschema:"return thumbnails of the hits too"`
}

// explainInput is what the tool explain is asked.
type explainInput struct {
	Row  int    `json:"row" jsonschema:"row of the gallery, as a hit names it"`
	Text string `json:"text" jsonschema:"text that the image of the row is compared with"`
}

// Serve answers one program over t until it leaves or ctx ends, neither of which is an error.
func (x Tools) Serve(ctx context.Context, t protocol.Transport) error {
	s := protocol.NewServer(&protocol.Implementation{Name: "geoalign", Version: x.Version}, nil)
	read := &protocol.ToolAnnotations{ReadOnlyHint: true}
	protocol.AddTool(s, &protocol.Tool{Name: "search", Annotations: read,
		Description: "Search the gallery by a text, or by one of its own rows. The nearest come first, with row, id, name or caption, payload and score."},
		x.search)
	if x.Explain != nil {
		protocol.AddTool(s, &protocol.Tool{Name: "explain", Annotations: read,
			Description: "Show what the score of an image of the gallery and a text rests on: shares of the words, and the image with the places that matter bright."},
			x.explain)
	}
	if err := s.Run(ctx, t); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// search is the tool search. An error is an answer to the program, which may ask in another way.
func (x Tools) search(ctx context.Context, _ *protocol.CallToolRequest, in searchInput) (*protocol.CallToolResult, any, error) {
	c := client.New("http://localhost", "")
	c.HTTP.Transport = within{x.Server}
	found, err := c.Search(ctx, client.Query{Text: in.Text, Row: in.Row, K: in.K, Filter: in.Filter, MinScore: in.MinScore})
	if err != nil {
		return nil, nil, said(err)
	}
	content, err := answer(found)
	if err != nil || !in.Pictures {
		return content, nil, err
	}
	for _, h := range found.Hits {
		if h.Thumbnail == "" {
			continue
		}
		a, err := c.HTTP.Get("http://localhost" + h.Thumbnail)
		if err != nil {
			return nil, nil, err
		}
		b, err := io.ReadAll(a.Body)
		if err != nil || a.StatusCode != http.StatusOK { // the photo may be gone
			continue
		}
		content.Content = append(content.Content, &protocol.ImageContent{Data: b, MIMEType: a.Header.Get("Content-Type")})
	}
	return content, nil, nil
}

// explain is the tool explain.
func (x Tools) explain(ctx context.Context, _ *protocol.CallToolRequest, in explainInput) (*protocol.CallToolResult, any, error) {
	e, err := x.Explain(ctx, in.Row, in.Text)
	if err != nil {
		return nil, nil, err
	}
	content, err := answer(e)
	if err == nil && e.Heat != nil {
		content.Content = append(content.Content, &protocol.ImageContent{Data: e.Heat, MIMEType: "image/png"})
	}
	return content, nil, err
}

// said is what the server says, without its status.
func said(err error) error {
	if e, ok := errors.AsType[*client.Error](err); ok {
		return errors.New(e.Message)
	}
	return err
}

// answer is v as JSON.
func answer(v any) (*protocol.CallToolResult, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &protocol.CallToolResult{Content: []protocol.Content{&protocol.TextContent{Text: string(b)}}}, nil
}

// within is a transport to a server of the same process.
type within struct{ server http.Handler }

// RoundTrip implements http.RoundTripper.
func (w within) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Host = r.URL.Host
	if r.Body == nil {
		r.Body = http.NoBody
	}
	a := &reply{header: http.Header{}, code: http.StatusOK}
	w.server.ServeHTTP(a, r)
	return &http.Response{StatusCode: a.code, Header: a.header, Body: io.NopCloser(&a.body), Request: r,
		ContentLength: int64(a.body.Len()), ProtoMajor: 1, ProtoMinor: 1}, nil
}

// reply collects an answer.
type reply struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *reply) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *reply) WriteHeader(code int) { a.code = code }

// Write implements http.ResponseWriter.
func (a *reply) Write(b []byte) (int, error) { return a.body.Write(b) }
