package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/serve"
	"github.com/geoalign/geoalign/serve/client"
)

// serving serves a gallery of two rows of two numbers, which has no model, for clients with a token.
func serving(dir, token string) (address string, stop func(), err error) {
	m := gallery.Manifest{Version: 1, Side: gallery.Image, Dim: 2, Rows: 2, Complete: true}
	s, err := gallery.WriteShard(dir, "images-00000", []safetensors.Tensor{{Name: gallery.Image, Shape: []int{2, 2}, Data: []float32{1, 0, 0, 1}}}, m.Meta, 2,
		func(i int) any { return gallery.Item{Row: i, Name: fmt.Sprintf("%d.png", i)} })
	if err != nil {
		return "", nil, err
	}
	m.Shards = []gallery.Shard{s}
	if err := m.Write(dir); err != nil {
		return "", nil, err
	}
	o := serve.Options{Log: io.Discard, Open: func(ctx context.Context) (*serve.Source, error) {
		return serve.Open(ctx, dir, serve.OpenOptions{Writable: true})
	}}
	if token != "" {
		o.Tokens = []string{token}
	}
	server, err := serve.New(context.Background(), o)
	if err != nil {
		return "", nil, err
	}
	h := httptest.NewServer(server.Handler())
	return h.URL, func() { h.Close(); server.Close() }, nil
}

func Example() {
	dir, _ := os.MkdirTemp("", "client")
	defer os.RemoveAll(dir)
	address, stop, err := serving(dir, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	ctx, c := context.Background(), client.New(address, "")
	changed, err := c.Put(ctx, client.Item{ID: "new", Vector: []float32{1, 1}, Payload: map[string]any{"year": 2024}})
	fmt.Println(changed.Put, changed.Rows, err)
	found, err := c.Search(ctx, client.Query{Vector: []float32{2, 2}, K: 2, Filter: map[string]any{"year": map[string]any{"gte": 2020}}})
	fmt.Printf("%s %.2f %s %v\n", found.Hits[0].ID, found.Hits[0].Score, found.Hits[0].Payload, err)
	changed, err = c.Delete(ctx, "new", "1.png")
	fmt.Println(changed.Deleted, changed.Rows, err)
	// Output:
	// 1 3 <nil>
	// new 1.00 {"year":2024} <nil>
	// 2 1 <nil>
}

// TestClient: what the server refuses is an Error with its status and words, and a merge keeps what was put.
func TestClient(t *testing.T) {
	dir, token := t.TempDir(), strings.Repeat("t", 20)
	address, stop, err := serving(dir, token)
	check.OK(t, err)
	_, err = client.New(address, "").Search(t.Context(), client.Query{Text: "a"})
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Status != 401 || !strings.Contains(e.Message, "token") {
		t.Errorf("%v", err)
	}
	c := client.New(address, token)
	_, err = c.Embed(t.Context(), "a")
	check.Error(t, err, "400: the server has no model")
	var items []client.Item
	for i := range 1000 {
		items = append(items, client.Item{ID: fmt.Sprint("p/", i), Vector: []float32{1, float32(i)}})
	}
	for range 9 { // as many changes as are merged
		check.Get(c.Put(t.Context(), items...))(t)
	}
	changed := check.Get(c.DeleteWhere(t.Context(), map[string]any{"id": "p/7"}))(t)
	if changed.Deleted != 1 || changed.Rows != 1001 {
		t.Errorf("%+v", changed)
	}
	if h := check.Get(c.Item(t.Context(), "p/999"))(t); h.ID != "p/999" {
		t.Errorf("%+v", h)
	}
	found := check.Get(c.Search(t.Context(), client.Query{Vector: []float32{1, 0}, K: 2, WithVector: true}))(t)
	if len(found.Hits) != 2 || found.Hits[0].ID != "0.png" || len(found.Hits[0].Vector) != 2 {
		t.Errorf("%+v", found)
	}
	m := check.Get(gallery.ReadManifest(dir))(t)
	for range 1000 { // the merge goes on in the background
		if m = check.Get(gallery.ReadManifest(dir))(t); m.Generation > 1 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	g := check.Get(gallery.Open(dir))(t)
	defer g.Close()
	if m.Generation < 2 || g.Alive(gallery.Image) != 1001 {
		t.Errorf("generation %d, %d rows", m.Generation, g.Alive(gallery.Image))
	}
}
