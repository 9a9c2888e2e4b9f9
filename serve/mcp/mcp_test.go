package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	protocol "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/geoalign/geoalign/internal/check"
)

// connect serves tools and returns a program that calls them: what an answer says, and how many pictures it has.
func connect(t *testing.T, x Tools) func(tool string, args any) (text string, pictures int, refused bool) {
	t.Helper()
	here, there := protocol.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- x.Serve(ctx, there) }()
	c := check.Get(protocol.NewClient(&protocol.Implementation{Name: "test"}, nil).Connect(ctx, here, nil))(t)
	t.Cleanup(func() {
		cancel()
		check.OK(t, <-ended)
	})
	return func(tool string, args any) (string, int, bool) {
		t.Helper()
		a := check.Get(c.CallTool(t.Context(), &protocol.CallToolParams{Name: tool, Arguments: args}))(t)
		return a.Content[0].(*protocol.TextContent).Text, len(a.Content) - 1, a.IsError
	}
}

// TestSearch: a call is a request of the server, with its hits and the thumbnails that can be had, and what the server
// refuses the program reads.
func TestSearch(t *testing.T) {
	var asked map[string]any
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/search", func(w http.ResponseWriter, r *http.Request) {
		asked = nil
		if r.Host != "localhost" || json.NewDecoder(r.Body).Decode(&asked) != nil {
			t.Errorf("asked %s", r.Host)
		}
		if asked["text"] == "nothing" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error": "no word of the text is known"}`)
			return
		}
		fmt.Fprint(w, `{"metric": "inner", "hits": [{"row": 7, "score": 0.5, "thumbnail": "/v1/thumbnails/7", "payload": {"year": 2020}}, {"row": 8, "score": 0.25, "thumbnail": "/v1/thumbnails/8"}]}`)
	})
	mux.HandleFunc("GET /v1/thumbnails/7", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "\xff\xd8\xff") })
	call := connect(t, Tools{Server: mux})

	text, pictures, refused := call("search", map[string]any{"text": "a dog", "k": 2, "filter": map[string]any{"year": 2020}, "pictures": true})
	if refused || pictures != 1 || !strings.Contains(text, `"row":7`) || !strings.Contains(text, `{"year":2020}`) {
		t.Errorf("%s, %d pictures", text, pictures)
	}
	if fmt.Sprint(asked) != "map[filter:map[year:2020] k:2 text:a dog]" {
		t.Errorf("asked %v", asked)
	}
	if _, pictures, _ = call("search", map[string]any{"row": 0, "min_score": 0}); pictures != 0 || fmt.Sprint(asked) != "map[min_score:0 row:0]" {
		t.Errorf("asked %v, %d pictures", asked, pictures)
	}
	if text, _, refused = call("search", map[string]any{"text": "nothing"}); !refused || text != "no word of the text is known" {
		t.Errorf("%q", text)
	}
	if text, _, refused = call("search", map[string]any{"texts": "a"}); !refused || !strings.Contains(text, "texts") {
		t.Errorf("%q", text)
	}
}

// TestExplain: an explanation has words and a picture, and its error is an answer.
func TestExplain(t *testing.T) {
	call := connect(t, Tools{Server: http.NotFoundHandler(), Explain: func(_ context.Context, row int, text string) (*Explanation, error) {
		if row != 3 {
			return nil, errors.New("row must be 3")
		}
		return &Explanation{Score: 0.5, Words: []Word{{text, 1}}, Heat: []byte("png")}, nil
	}})
	text, pictures, refused := call("explain", map[string]any{"row": 3, "text": "dog"})
	if refused || pictures != 1 || text != `{"score":0.5,"words":[{"text":"dog","share":1}]}` {
		t.Errorf("%s, %d pictures", text, pictures)
	}
	if text, _, refused = call("explain", map[string]any{"row": 4, "text": "dog"}); !refused || text != "row must be 3" {
		t.Errorf("%q", text)
	}
}
