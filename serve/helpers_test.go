package serve

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
)

const dim = 4

// fake encodes a text to the row that its number names, see featuresOf.
type fake struct {
	mu      sync.Mutex
	batches []int
	block   chan struct{} // texts wait for it; nil: they do not
	panics  bool
}

func (f *fake) Reads(string) error { return nil }

func (f *fake) Tokens(text string) (int, error) {
	if strings.Trim(text, "! ") == "" {
		return 0, fmt.Errorf("nothing of the text %q is left", text)
	}
	return len(strings.Fields(text)), nil
}

func (f *fake) Texts(ctx context.Context, texts []string) ([]float32, error) {
	f.mu.Lock()
	f.batches = append(f.batches, len(texts))
	f.mu.Unlock()
	if f.block != nil {
		select {
		case <-f.block:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if f.panics {
		panic("encoder")
	}
	var x []float32
	for _, text := range texts {
		if text == "not finite" {
			x = append(x, float32(math.NaN()), 0, 0, 0)
			continue
		}
		x = append(x, featuresOf(int(crc32.ChecksumIEEE([]byte(text))%20))...)
	}
	return x, nil
}

func (f *fake) Images(_ context.Context, images []*transform.Image) (own, folded []float32, err error) {
	for _, m := range images {
		own = append(own, featuresOf(int(m.Pix[0]))...)
		folded = append(folded, featuresOf(int(m.Pix[0])+1)...)
	}
	return own, folded, nil
}

// Width is of a model that reads stored features of three numbers, the first of which names a row.
func (f *fake) Width(string) int { return 3 }

func (f *fake) Features(_ context.Context, side string, x []float32) (own, folded []float32, err error) {
	f.mu.Lock()
	f.batches = append(f.batches, len(x)/3)
	f.mu.Unlock()
	for ; len(x) > 0; x = x[3:] {
		own = append(own, featuresOf(int(x[0]))...)
		folded = append(folded, featuresOf(int(x[1]))...)
	}
	return own, folded, nil
}

// featuresOf returns features that differ for rows of up to 256.
func featuresOf(row int) []float32 {
	x := []float32{float32(row%4) + 1, float32(row/4%4) + 1, float32(row/16%4) + 1, float32(row/64) + 1}
	sum := float32(0)
	for _, v := range x {
		sum += v * v
	}
	for i := range x {
		x[i] /= sum
	}
	return x
}

// picture returns a PNG whose first pixel is of a row.
func picture(t testing.TB, row, side int) []byte {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, side, side))
	for i := range m.Pix {
		m.Pix[i] = 255
	}
	m.Set(0, 0, color.NRGBA{uint8(row), 0, 0, 255})
	var b bytes.Buffer
	check.OK(t, png.Encode(&b, m))
	return b.Bytes()
}

// makeGallery writes a gallery of n images. Row 3 is no image, row 4 missing.
func makeGallery(t testing.TB, n int) string {
	t.Helper()
	dir := t.TempDir()
	var x []float32
	var names strings.Builder
	for i := range n {
		x = append(x, featuresOf(i)...)
		name := fmt.Sprintf("<b>%d.png", i)
		fmt.Fprintf(&names, "{\"row\":%d,\"name\":%q}\n", i, name)
		b := picture(t, i, 300)
		switch i {
		case 3:
			b = []byte("secret text")
		case 4:
			continue
		}
		if i > 20 {
			continue
		}
		check.OK(t, os.WriteFile(filepath.Join(dir, name), b, 0o666))
	}
	f := check.Get(os.Create(filepath.Join(dir, "x.safetensors")))(t)
	if err := errors.Join(safetensors.Write(f, []safetensors.Tensor{{Name: "image", Shape: []int{n, dim}, Data: x}}, nil), f.Close()); err != nil {
		t.Fatal(err)
	}
	size, sum := check.Get2(gallery.SumFile(t.Context(), f.Name()))(t)
	check.OK(t, os.WriteFile(filepath.Join(dir, "x.jsonl"), []byte(names.String()), 0o666))
	m := gallery.Manifest{Version: 1, Side: "image", Dim: dim, Rows: n, Complete: true, Root: dir,
		Meta:   gallery.Meta{Model: "/none", Score: "cosine", Product: true, Space: "sphere"},
		Shards: []gallery.Shard{{Features: "x.safetensors", Names: "x.jsonl", Rows: n, Inputs: n, FeaturesBytes: size, FeaturesSum: sum}}}
	check.OK(t, m.Write(dir))
	return dir
}

// opener opens the gallery of a folder with a fake encoder, and counts what is open.
func opener(t testing.TB, dir string, f *fake, open *sync.Map) func(ctx context.Context) (*Source, error) {
	return func(context.Context) (*Source, error) {
		g, err := gallery.Open(dir)
		if err != nil {
			return nil, err
		}
		e, err := compute.New(compute.Options{Backend: "plain", Threads: 1})
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		s := &Source{Gallery: g, Side: gallery.Image, Engine: e, Encoder: f}
		s.Picture = func(row int) (*transform.Image, error) {
			path, err := g.ImageFile(row)
			if err != nil {
				return nil, err
			}
			return images.DecodeFile(path, 0)
		}
		s.Close = func() error { open.Delete(g); e.Close(); return g.Close() }
		open.Store(g, true)
		return s, nil
	}
}

// writableOpener opens the gallery of a folder to be changed.
func writableOpener(t testing.TB, dir string, f *fake, open *sync.Map) func(ctx context.Context) (*Source, error) {
	return func(context.Context) (*Source, error) {
		w, err := gallery.OpenWriter(dir, nil)
		if err != nil {
			return nil, err
		}
		e := check.Get(compute.New(compute.Options{Backend: "plain", Threads: 1}))(t)
		t.Cleanup(e.Close)
		open.Store(w, true)
		users := 0
		var source func(ctx context.Context, g *gallery.Gallery) (*Source, error)
		var mu sync.Mutex
		source = func(_ context.Context, g *gallery.Gallery) (*Source, error) {
			mu.Lock()
			users++
			mu.Unlock()
			open.Store(g, true)
			s := &Source{Gallery: g, Side: g.Sides()[0], Engine: e, Encoder: f, Writer: w, Next: source}
			s.Close = func() error {
				mu.Lock()
				defer mu.Unlock()
				open.Delete(g)
				if users--; users > 0 {
					return g.Close()
				}
				open.Delete(w)
				return errors.Join(g.Close(), w.Close())
			}
			return s, nil
		}
		return source(t.Context(), w.Gallery())
	}
}

// server is a server under test.
type server struct {
	*Server
	url  string
	adm  string // url of Admin
	f    *fake
	open sync.Map
	t    testing.TB
}

// newServer serves the gallery of a folder.
func newServer(t testing.TB, dir string, o Options) *server {
	t.Helper()
	return newServerOf(t, o, opener, dir)
}

// newServerOf is newServer of what an opener opens.
func newServerOf(t testing.TB, o Options, opener func(t testing.TB, dir string, f *fake, open *sync.Map) func(ctx context.Context) (*Source, error), dir string) *server {
	t.Helper()
	s := &server{f: &fake{}, t: t}
	o.Open = opener(t, dir, s.f, &s.open)
	s.Server = check.Get(New(t.Context(), o))(t)
	h, a := httptest.NewServer(s.Handler()), httptest.NewServer(s.Admin())
	s.url, s.adm = h.URL, a.URL
	t.Cleanup(func() {
		h.Close()
		a.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		s.current.ended.Wait()
		if n := s.opened(); n > 0 {
			t.Errorf("%d galleries are still open", n)
		}
	})
	return s
}

func (s *server) opened() (n int) {
	s.open.Range(func(any, any) bool { n++; return true })
	return n
}

// do sends a request, to Admin where the path begins with admin:, and returns status and body.
func (s *server) do(method, path, body string, header ...string) (int, string) {
	s.t.Helper()
	base := s.url
	if after, is := strings.CutPrefix(path, "admin:"); is {
		base, path = s.adm, after
	}
	r := check.Get(http.NewRequestWithContext(context.Background(), method, base+path, strings.NewReader(body)))(s.t)
	if body != "" || method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Errorf("%s %s: %v", method, path, err)
		return 0, ""
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		s.t.Errorf("%s %s: %v", method, path, err)
	}
	return a.StatusCode, string(b)
}

// find searches and returns the rows.
func (s *server) find(body string) []int {
	s.t.Helper()
	code, text := s.do("POST", "/v1/search", body)
	var a searchReply
	if err := json.Unmarshal([]byte(text), &a); err != nil || code != 200 {
		s.t.Errorf("%.200s: %d %s", body, code, text)
	}
	var rows []int
	for _, h := range a.Hits {
		rows = append(rows, h.Row)
	}
	return rows
}

func base64Of(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func readFile(dir, name string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, name))
	return string(b), err
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	check.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
}

// listen serves on a port of its own until cancel is called; ended then has what Serve returned.
func listen(t *testing.T, s *Server) (addr string, cancel context.CancelFunc, ended chan error) {
	t.Helper()
	l := check.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended = make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l, nil) }()
	return l.Addr().String(), cancel, ended
}
