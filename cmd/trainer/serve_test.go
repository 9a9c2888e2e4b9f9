package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/serve"
)

// live is output that is read while it is written.
type live struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *live) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(p) }
func (l *live) String() string              { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// waitFor waits until text has a match of a pattern and returns its first group.
func waitFor(t *testing.T, text func() string, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if m := re.FindStringSubmatch(text()); m != nil {
			return m[len(m)-1]
		}
	}
	t.Fatalf("no %q in %q", pattern, text())
	return ""
}

// A split that was embedded is served with its thumbnails: texts, images and rows are asked by,
// SIGHUP reloads it, and the end of the context ends it.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	must(t, exitDone, tinyArgs(dir, "--quiet", "--max-steps", "2")...)
	must(t, exitDone, "embed", "--checkpoint", dir, "--split", "test", "--quiet")
	gallery := filepath.Join(dir, "embeddings-test")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, messages live
	code := make(chan int, 1)
	go func() {
		code <- execute(ctx, []string{"serve", gallery, "--listen", "127.0.0.1:0"}, &out, &messages)
	}()
	url := waitFor(t, out.String, `serving \d+ images of .* at (http://127\.0\.0\.1:\d+)/`)
	ask := func(path, body string) string {
		t.Helper()
		var a *http.Response
		var err error
		if body == "" {
			a, err = http.Get(url + path)
		} else {
			a, err = http.Post(url+path, "application/json", strings.NewReader(body))
		}
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		b, err := io.ReadAll(a.Body)
		if err != nil || a.StatusCode != http.StatusOK {
			t.Errorf("%s %s: %d %s %v", path, body, a.StatusCode, b, err)
		}
		return string(b)
	}
	contains(t, ask("/v1/search", `{"text": "a red circle", "k": 2}`), `"score":`, `"thumbnail":"/v1/thumbnails/`, `"name":"scenes/test/`)
	contains(t, ask("/v1/thumbnails/1", ""), "\xff\xd8\xff")
	contains(t, ask("/v1/search", `{"row": 0, "k": 1}`), `"hits":[{"row":`)

	reload := hangup(func() bool { return true })
	if !reload() {
		t.Error("SIGHUP is the end of a server")
	}
	waitFor(t, messages.String, `(reloaded: gallery)`)
	if hung := hangup(func() func() bool {
		first := true
		return func() bool { was := first; first = false; return was }
	}()); hung() {
		t.Error("SIGHUP is not an end where the terminal has gone")
	}
	cancel()
	if c := <-code; c != exitDone && c != exitInterrupted {
		t.Errorf("code %d: %s", c, messages.String())
	}
	if reload() {
		t.Error("SIGHUP reloads what is no longer served")
	}

	for want, args := range map[string][]string{
		"can be reached from other machines: add --public": {gallery, "--listen", "0.0.0.0:0"},
		"--listen must be HOST:PORT":                       {gallery, "--listen", "8080"},
		"--max-k must be at least 1":                       {gallery, "--max-k", "0"},
		"needs one GALLERY":                                {},
		"--recall must be above 0":                         {gallery, "--recall", "-1"},
	} {
		fails(t, exitUsage, append([]string{"serve"}, args...), want)
	}
	fails(t, exitFailed, []string{"serve", dir, "--listen", "127.0.0.1:0"}, "has neither features.safetensors nor index.json")
	check.OK(t, os.Rename(filepath.Join(dir, "checkpoints"), filepath.Join(dir, "gone")))
	fails(t, exitFailed, []string{"serve", gallery, "--listen", "127.0.0.1:0"}, "which is not there: name a copy with --checkpoint", "--no-model serves")
	fails(t, exitUsage, []string{"serve", gallery, "--text-url", "localhost:8081"}, "--text-url must be an address as http://127.0.0.1:8081/v1/embeddings")
	fails(t, exitUsage, []string{"serve", gallery, "--text-model", "m"}, "--text-model is of --text-url: name a server")
	fails(t, exitUsage, []string{"serve", gallery, "--text-url", "http://x/", "--checkpoint", dir}, "--text-url and --checkpoint")
	fails(t, exitUsage, []string{"serve", gallery, "--text-url", "http://x/", "--no-model"}, "--no-model and --text-url")
	fails(t, exitFailed, []string{"serve", gallery, "--listen", "127.0.0.1:0", "--text-url", "http://127.0.0.1:1/v1/embeddings"}, "the text server http://127.0.0.1:1/v1/embeddings: ")
}

// A gallery of features is asked by features of the other encoder, and answers what search does.
func TestServeFeatures(t *testing.T) {
	data, ck := rotatedFeatures(t, 200, 6), filepath.Join(t.TempDir(), "run")
	must(t, exitDone, append([]string{"train", "--max-steps", "30", "--quiet", "--out", ck}, data...)...)
	folder, out := strings.TrimPrefix(data[3], "data.root="), filepath.Join(ck, "images")
	must(t, exitDone, "embed", "--checkpoint", ck, "--rows", filepath.Join(folder, "image.safetensors"), "--out", out)
	s := check.Get(serve.New(t.Context(), serve.Options{Open: func(ctx context.Context) (*serve.Source, error) {
		return serve.Open(ctx, out, serve.OpenOptions{})
	}}))(t)
	defer s.Close()
	ask := func(method, path, body string) (int, string) {
		r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for side, file := range map[string]string{"text": "text.safetensors", "image": "image.safetensors"} {
		m := check.Get(features.OpenMatrix(filepath.Join(folder, file), ""))(t)
		defer m.Close()
		row := make([]float32, m.Width())
		check.OK(t, m.Row(7, row))
		query := check.Get(json.Marshal(map[string]any{side + "_features": row, "k": 5}))(t)
		code, text := ask("POST", "/v1/search", string(query))
		var answer struct{ Hits []hitRow }
		if err := json.Unmarshal([]byte(text), &answer); err != nil || code != http.StatusOK {
			t.Fatalf("%d %s: %v", code, text, err)
		}
		_, _, want := hits(t, out, "--"+side+"-features", filepath.Join(folder, file), "--k", "5")
		if !slices.EqualFunc(answer.Hits, want.Queries[7], func(a, b hitRow) bool { return a.Row == b.Row && a.Name == b.Name }) {
			t.Errorf("features of a %s find %v, search finds %v", side, answer.Hits, want.Queries[7])
		}
	}
	if _, info := ask("GET", "/v1/info", ""); !strings.Contains(info, `"text_features":6,"image_features":6`) {
		t.Errorf("info: %s", info)
	}
}

// A signal that reloads does not stop, and the next one that stops does.
func TestHangupReloads(t *testing.T) {
	signals := make(chan os.Signal)
	reloads, stopped := 0, make(chan struct{})
	w := watcher{stop: func() { close(stopped) }, reload: func() bool { reloads++; return reloads < 3 }, exit: func(int) {}, out: io.Discard, grace: time.Hour}
	ended := make(chan struct{})
	go func() { defer close(ended); w.watch(signals) }()
	for range 3 {
		select {
		case <-stopped:
			t.Fatal("stopped by a reload")
		default:
		}
		signals <- syscall.SIGHUP
	}
	<-stopped // the third is not a reload any more
	close(signals)
	<-ended
	if reloads != 3 {
		t.Errorf("%d reloads", reloads)
	}
}
