package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/gallery"
)

// TextServer is another server that encodes texts, in the form of OpenAI's POST /v1/embeddings.
type TextServer struct {
	URL   string // of the requests; empty: none
	Model string // that requests name
	Key   string // a bearer token; empty: none
}

// Bounds of a text server.
const (
	remoteWait  = 10 * time.Second // for an answer
	remoteBytes = 64 << 20         // of an answer
)

// remote is a text server as an Encoder for a gallery.
type remote struct {
	TextServer
	g      *gallery.Gallery
	client http.Client
}

// openRemote asks a text server for a text, to see that its features are of the gallery.
func openRemote(ctx context.Context, s TextServer, g *gallery.Gallery) (*remote, error) {
	r := &remote{s, g, http.Client{Timeout: remoteWait}}
	_, err := r.Texts(ctx, []string{"a photo"})
	return r, err
}

// Reads implements Encoder.
func (r *remote) Reads(side string) error {
	if side != gallery.Text {
		return errors.New("the server encodes texts alone: query by a text, a row or a vector")
	}
	return nil
}

// Tokens implements Encoder. How many there are only the text server knows.
func (r *remote) Tokens(text string) (int, error) {
	if strings.TrimSpace(text) == "" {
		return 0, errors.New("the text is empty")
	}
	return 0, nil
}

// Texts implements Encoder.
func (r *remote) Texts(ctx context.Context, texts []string) (rows []float32, err error) {
	b, err := json.Marshal(struct {
		Input    []string `json:"input"`
		Model    string   `json:"model"`
		Encoding string   `json:"encoding_format"`
	}{texts, r.Model, "float"})
	if err != nil {
		return nil, err
	}
	each, err := r.ask(ctx, b, len(texts))
	if err != nil {
		return nil, fmt.Errorf("the text server %s: %w", r.URL, err)
	}
	for _, x := range each {
		if x, err = r.g.Channels(x); err != nil {
			return nil, fmt.Errorf("the text server %s: its embedding %w", r.URL, err)
		}
		rows = append(rows, x...)
	}
	return rows, nil
}

// ask sends a request and returns the n embeddings of the answer in the order of the texts.
func (r *remote) ask(ctx context.Context, body []byte, n int) ([][]float32, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	q.Header.Set("Content-Type", "application/json")
	if r.Key != "" {
		q.Header.Set("Authorization", "Bearer "+r.Key)
	}
	a, err := r.client.Do(q)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	b, err := io.ReadAll(io.LimitReader(a.Body, remoteBytes))
	if err != nil {
		return nil, err
	}
	if a.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %s: %s", a.Status, cut(string(b), 200))
	}
	var got struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(b, &got); err != nil {
		return nil, fmt.Errorf("its answer cannot be read: %w", err)
	}
	out := make([][]float32, n)
	for _, e := range got.Data {
		if e.Index < 0 || e.Index >= n || out[e.Index] != nil {
			return nil, fmt.Errorf("it answers with an embedding %d of %d texts", e.Index, n)
		}
		out[e.Index] = e.Embedding
	}
	if len(got.Data) != n {
		return nil, fmt.Errorf("it answers with %d embeddings of %d texts", len(got.Data), n)
	}
	return out, nil
}

// Images implements Encoder.
func (r *remote) Images(context.Context, []*transform.Image) (own, folded []float32, err error) {
	return nil, nil, r.Reads(gallery.Image)
}

// Width implements Encoder.
func (r *remote) Width(string) int { return 0 }

// Features implements Encoder.
func (r *remote) Features(context.Context, string, []float32) (own, folded []float32, err error) {
	return nil, nil, errors.New("the server reads no stored features")
}
