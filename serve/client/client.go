// Package client asks a server of a gallery (package serve, trainer serve) from a Go program. It needs the standard
// library alone.
//
//	c := client.New("http://127.0.0.1:8080", "")
//	found, err := c.Search(ctx, client.Query{Text: "two dogs on a beach", K: 5})
//	_, err = c.Put(ctx, client.Item{ID: "a.jpg", Image: bytes, Payload: map[string]any{"year": 2024}})
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client asks one server. Many goroutines may use it at once.
type Client struct {
	base, token string
	HTTP        *http.Client
}

// New returns a client of the server at an address such as http://127.0.0.1:8080. The token may be empty.
func New(address, token string) *Client {
	return &Client{strings.TrimSuffix(address, "/"), token, &http.Client{Timeout: time.Minute}}
}

// Error is what the server answers instead of a result.
type Error struct {
	Status  int // of HTTP
	Message string
}

// Error is what the server says.
func (e *Error) Error() string { return fmt.Sprintf("the server answers %d: %s", e.Status, e.Message) }

// Query is what to search for: exactly one of Text, Image, Vector and Row is set.
type Query struct {
	Text   string    `json:"text,omitempty"`
	Image  []byte    `json:"image,omitempty"`  // of a file
	Vector []float32 `json:"vector,omitempty"` // (C)
	Row    *int      `json:"row,omitempty"`

	K          int            `json:"k,omitempty"` // hits; 0: 10
	Exact      bool           `json:"exact,omitempty"`
	Filter     map[string]any `json:"filter,omitempty"` // see docs/serve.md
	Offset     int            `json:"offset,omitempty"`
	MinScore   *float64       `json:"min_score,omitempty"`
	Fields     []string       `json:"fields,omitempty"`
	WithVector bool           `json:"with_vector,omitempty"`
}

// Found is the answer to a query.
type Found struct {
	Gallery string  `json:"gallery"` // another one where the rows are others
	Metric  string  `json:"metric"`
	Index   bool    `json:"index"` // not all rows were compared
	Recall  float64 `json:"recall"`
	Hits    []Hit   `json:"hits"` // the nearest first
}

// Hit is a row that was found.
type Hit struct {
	Row       int             `json:"row"`
	ID        string          `json:"id"`
	Name      string          `json:"name,omitempty"`
	Caption   string          `json:"caption,omitempty"`
	Payload   json.RawMessage `json:"payload,omitempty"`
	Thumbnail string          `json:"thumbnail,omitempty"` // path at the server
	Score     float32         `json:"score"`
	Fields    map[string]any  `json:"fields,omitempty"`
	Vector    []float32       `json:"vector,omitempty"`
}

// Item is a row to put: exactly one of Text, Image and Vector is set.
type Item struct {
	ID      string    `json:"id"` // takes the place of the row that has it, or is new
	Text    string    `json:"text,omitempty"`
	Image   []byte    `json:"image,omitempty"` // of a file
	Vector  []float32 `json:"vector,omitempty"`
	Payload any       `json:"payload,omitempty"`
}

// Changed is the answer to a change.
type Changed struct {
	Put      int    `json:"put"`
	Replaced int    `json:"replaced"`
	Deleted  int    `json:"deleted"`
	Rows     int    `json:"rows"` // that can be found now
	Gallery  string `json:"gallery"`
}

// Search returns the rows that are nearest to a query.
func (c *Client) Search(ctx context.Context, q Query) (*Found, error) {
	return ask[Found](ctx, c, http.MethodPost, "/v1/search", q)
}

// Item returns the row that has an id, without a score.
func (c *Client) Item(ctx context.Context, id string) (*Hit, error) {
	return ask[Hit](ctx, c, http.MethodGet, "/v1/items/"+url.PathEscape(id), nil)
}

// Put puts rows, all or none. They are on the server's disk, and found, when it returns.
func (c *Client) Put(ctx context.Context, items ...Item) (*Changed, error) {
	return ask[Changed](ctx, c, http.MethodPut, "/v1/items", map[string]any{"items": items})
}

// Delete deletes the rows that have some ids.
func (c *Client) Delete(ctx context.Context, ids ...string) (*Changed, error) {
	return ask[Changed](ctx, c, http.MethodDelete, "/v1/items", map[string]any{"ids": ids})
}

// DeleteWhere deletes the rows that a filter chooses.
func (c *Client) DeleteWhere(ctx context.Context, filter map[string]any) (*Changed, error) {
	return ask[Changed](ctx, c, http.MethodDelete, "/v1/items", map[string]any{"filter": filter})
}

// Embed returns the features of texts (n, C).
func (c *Client) Embed(ctx context.Context, texts ...string) ([][]float32, error) {
	a, err := ask[struct {
		Data []struct{ Embedding []float32 }
	}](ctx, c, http.MethodPost, "/v1/embeddings", map[string]any{"input": texts})
	if err != nil {
		return nil, err
	}
	out := make([][]float32, len(a.Data))
	for i, d := range a.Data {
		out[i] = d.Embedding
	}
	return out, nil
}

// ask sends a request and decodes the answer.
func ask[T any](ctx context.Context, c *Client, method, path string, in any) (*T, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	a, err := c.HTTP.Do(r)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	d := json.NewDecoder(a.Body)
	if a.StatusCode != http.StatusOK {
		e := &Error{Status: a.StatusCode}
		var says struct{ Error string }
		if d.Decode(&says) == nil {
			e.Message = says.Error
		}
		return nil, e
	}
	out := new(T)
	return out, d.Decode(out)
}
