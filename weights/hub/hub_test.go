package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/geoalign/geoalign/weights/hub/hubtest"
)

const (
	commitA = "0123456789abcdef0123456789abcdef01234567"
	commitB = "fedcba9876543210fedcba9876543210fedcba98"
)

// site is a hub of org/tiny.
type site struct{ *hubtest.Site }

func newSite(t testing.TB) site {
	return site{hubtest.New(t, commitA, map[string]string{"config.json": `{"a": 1}`, "README.md": "# Tiny",
		"model.safetensors": strings.Repeat("weights ", 1<<20), "1_Pooling/config.json": "{}"})}
}

func (s site) client(t testing.TB) *Client {
	return &Client{Endpoint: s.Hub.URL, Cache: t.TempDir(), HTTP: http.DefaultClient}
}

// all wants every kind of file: two that are there, one that is not, and one that the first of them names.
func all(s Snapshot, _ []string) ([]string, error) {
	list := []string{"config.json", "model.safetensors", "vocab.txt"}
	if s.Has("config.json") {
		list = append(list, "1_Pooling/config.json")
	}
	return list, nil
}

// holds fails unless the folder has just these files, whole.
func (s site) holds(t testing.TB, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != s.Files[name] {
			t.Errorf("%s: %v, or another content", name, err)
		}
	}
	for _, pattern := range []string{"../../blobs/*.incomplete", "README.md"} {
		if left, _ := filepath.Glob(filepath.Join(dir, pattern)); len(left) > 0 {
			t.Errorf("there is %v", left)
		}
	}
}

var wanted = []string{"config.json", "model.safetensors", "1_Pooling/config.json"}

// TestFetch: the layout of the cache is that of huggingface_hub, and a model that is there is not asked for again.
func TestFetch(t *testing.T) {
	s := newSite(t)
	c := s.client(t)
	var told []string
	c.Progress = func(file string, done, size int64) {
		if done == size {
			told = append(told, file)
		}
	}
	dir, err := c.Fetch(t.Context(), "org/tiny", all)
	if err != nil {
		t.Fatal(err)
	}
	s.holds(t, dir, wanted...)
	if !slices.Equal(told, wanted) {
		t.Errorf("told of %v", told)
	}
	sum := sha256.Sum256([]byte(s.Files["model.safetensors"]))
	link, err := os.Readlink(filepath.Join(dir, "model.safetensors"))
	if want := "../../blobs/" + hex.EncodeToString(sum[:]); err != nil || link != want {
		t.Errorf("the link is %q, want %q: %v", link, want, err)
	}
	at := filepath.Join(c.Cache, "models--org--tiny")
	if ref, err := os.ReadFile(filepath.Join(at, "refs/main")); err != nil || string(ref) != commitA {
		t.Errorf("refs/main is %q: %v", ref, err)
	}
	if _, err := os.Stat(filepath.Join(at, ".no_exist", commitA, "vocab.txt")); err != nil {
		t.Error(err)
	}

	asked := s.Asked.Load()
	for _, name := range []string{"org/tiny", "org/tiny@main", "org/tiny@" + commitA} {
		if again, err := c.Fetch(t.Context(), name, all); err != nil || again != dir {
			t.Errorf("%s: %s, want %s: %v", name, again, dir, err)
		}
	}
	if s.Asked.Load() != asked {
		t.Error("a model in the cache is asked for")
	}

	// A branch that went on is noticed by Update; what did not change is not fetched twice.
	s.Commit, s.Files["config.json"] = commitB, `{"a": 2}`
	large := len(s.Ranges)
	if again, err := c.Fetch(t.Context(), "org/tiny", all); err != nil || again != dir {
		t.Errorf("%s, want %s: %v", again, dir, err)
	}
	if err := c.Update("org/tiny"); err != nil {
		t.Fatal(err)
	}
	newer, err := c.Fetch(t.Context(), "org/tiny", all)
	if err != nil || newer == dir {
		t.Fatalf("%s: %v", newer, err)
	}
	s.holds(t, newer, wanted...)
	if len(s.Ranges) != large {
		t.Error("weights that are there are fetched again")
	}
	models, err := c.Models()
	if err != nil || len(models) != 1 || models[0].Repo != "org/tiny" || models[0].Dir != newer ||
		!slices.Equal(models[0].Revisions, []string{"main", commitA}) || models[0].Bytes < 8<<20 ||
		len(models[0].Files) != 3 {
		t.Errorf("%+v: %v", models, err)
	}
}

// TestInterrupted: what was interrupted goes on where it was, in the same call or in another one, or begins again where a
// server knows no ranges; a file that is changed on its way is fetched once more and never taken.
func TestInterrupted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s site, c *Client, cancel func())
		ranges []string
		err    string
	}{
		"a cut": {func(s site, _ *Client, _ func()) { s.CutAt.Store(30000) }, []string{"", "bytes=30000-"}, ""},
		"a cut without ranges": {func(s site, _ *Client, _ func()) { s.NoRange = true; s.CutAt.Store(30000) },
			[]string{"", "bytes=30000-"}, ""},
		"a byte, once":  {func(s site, _ *Client, _ func()) { s.Damage.Store(1) }, []string{"", ""}, ""},
		"a byte, twice": {func(s site, _ *Client, _ func()) { s.Damage.Store(2) }, []string{"", "", ""}, "checksum"},
		"the user": {func(_ site, c *Client, cancel func()) {
			c.Progress = func(file string, done, _ int64) {
				if file == "model.safetensors" && done >= 200000 {
					cancel()
				}
			}
		}, nil, "context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			cl := s.client(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c.change(s, cl, cancel)
			dir, err := cl.Fetch(ctx, "org/tiny", all)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("got %v, want %q", err, c.err)
				}
				if _, err := os.Stat(filepath.Join(cl.Cache, "models--org--tiny/snapshots", commitA,
					"model.safetensors")); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("a partial file is taken for a whole one: %v", err)
				}
				cl.Progress = nil
				if dir, err = cl.Fetch(t.Context(), "org/tiny", all); err != nil {
					t.Fatal(err)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			s.holds(t, dir, wanted...)
			if c.ranges != nil && !slices.Equal(s.Ranges, c.ranges) {
				t.Errorf("ranges %q, want %q", s.Ranges, c.ranges)
			}
		})
	}
}

// TestTogether: of several that fetch a model at once one fetches a file, and all have it.
func TestTogether(t *testing.T) {
	s := newSite(t)
	c := s.client(t)
	var all8 sync.WaitGroup
	for range 8 {
		all8.Go(func() {
			one := *c
			if _, err := one.Fetch(t.Context(), "org/tiny", all); err != nil {
				t.Error(err)
			}
		})
	}
	all8.Wait()
	if len(s.Ranges) != 1 {
		t.Errorf("the weights are fetched %d times", len(s.Ranges))
	}
}

// TestRefused: each failure is one line that names the model and what to do.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s site, c *Client)
		want   string
	}{
		{"org/other", nil, "hub: org/other: there is no such model at "},
		{"org/tiny@v9", nil, `has no revision "v9"`},
		{"org/tiny", func(s site, _ *Client) { s.Gated = true }, "is gated: see that its conditions are accepted at "},
		{"org/tiny", func(s site, c *Client) { s.Gated = true; c.Token = "other" }, "the account of HF_TOKEN may read it"},
		{"org/tiny", func(_ site, c *Client) { c.Offline = true }, "HF_HUB_OFFLINE is set: fetch it once without"},
		{"org/tiny", func(s site, c *Client) { s.Hub.Close() }, "cannot be reached"},
		{"org/tiny", func(_ site, c *Client) { c.Cache = "/dev/null/x" }, "/dev/null"},
		{"org/tiny", func(s site, c *Client) { c.Endpoint = s.Store.URL }, "does not answer as a hub does"},
		{"../tiny", nil, "is not a name of a model: want ORGANISATION/NAME"},
		{"a/b/c", nil, "is not a name of a model"},
		{"org/tiny@", nil, "has no revision behind @"},
		{"org/tiny@../../x", nil, "has no revision behind @"},
	} {
		s := newSite(t)
		cl := s.client(t)
		if c.change != nil {
			c.change(s, cl)
		}
		_, err := cl.Fetch(t.Context(), c.name, all)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// TestToken: a model that is gated is fetched with the token of an account, which no other host is told.
func TestToken(t *testing.T) {
	s := newSite(t)
	s.Gated = true
	c := s.client(t)
	c.Token = "secret"
	dir, err := c.Fetch(t.Context(), "org/tiny@refs/pr/1", all)
	if err != nil {
		t.Fatal(err)
	}
	s.holds(t, dir, wanted...)
}

// TestForeignCache: a model that another program fetched, of which it is not known what it lacks, is read offline, and
// online asked about once.
func TestForeignCache(t *testing.T) {
	s := newSite(t)
	c := s.client(t)
	dir, err := c.Fetch(t.Context(), "org/tiny", all)
	if err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(c.Cache, "models--org--tiny/.no_exist")
	if err := os.RemoveAll(none); err != nil {
		t.Fatal(err)
	}
	offline := *c
	offline.Offline = true
	if again, err := offline.Fetch(t.Context(), "org/tiny", all); err != nil || again != dir {
		t.Errorf("%s: %v", again, err)
	}
	if again, err := c.Fetch(t.Context(), "org/tiny", all); err != nil || again != dir {
		t.Errorf("%s: %v", again, err)
	}
	if _, err := os.Stat(none); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(none); err != nil {
		t.Fatal(err)
	}
	s.Hub.Close()
	if again, err := c.Fetch(t.Context(), "org/tiny", all); err != nil || again != dir {
		t.Errorf("without a network: %s: %v", again, err)
	}
}

// TestEnvironment: the variables are those of huggingface_hub.
func TestEnvironment(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "token"), []byte("from file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		set  map[string]string
		want Client
	}{
		"home": {map[string]string{"HF_HOME": home},
			Client{Endpoint: publicEndpoint, Cache: filepath.Join(home, "hub"), Token: "from file"}},
		"caches": {map[string]string{"XDG_CACHE_HOME": home},
			Client{Endpoint: publicEndpoint, Cache: filepath.Join(home, "huggingface/hub")}},
		"all": {map[string]string{"HF_HOME": home, "HF_HUB_CACHE": "/c", "HF_ENDPOINT": "http://h/", "HF_TOKEN": " t ",
			"HF_HUB_OFFLINE": "yes"}, Client{Endpoint: "http://h", Cache: "/c", Token: "t", Offline: true}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, key := range []string{"HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME", "HF_ENDPOINT",
				"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"} {
				t.Setenv(key, c.set[key])
			}
			got, err := FromEnvironment()
			if err != nil || got.Endpoint != c.want.Endpoint || got.Cache != c.want.Cache || got.Token != c.want.Token ||
				got.Offline != c.want.Offline {
				t.Errorf("%+v: %v", got, err)
			}
		})
	}
}

// FuzzParse: what is a name is one of a folder in the cache.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"a", "a/b", "a/b@main", "a/b@refs/pr/1", "a@" + commitA, "../a", "a/../b", "a@../.."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := Parse(text)
		if err != nil {
			return
		}
		if !filepath.IsLocal(n.folder()) || strings.Contains(n.folder(), "/") || !filepath.IsLocal("refs/"+n.Revision) {
			t.Errorf("%q: %+v", text, n)
		}
		if again, err := Parse(n.String()); err != nil || again != n {
			t.Errorf("%+v is read again as %+v: %v", n, again, err)
		}
	})
}
