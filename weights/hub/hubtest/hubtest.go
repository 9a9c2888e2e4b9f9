// Package hubtest serves a model as the Hugging Face hub does.
package hubtest

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Site is a hub of one model, org/tiny, whose large files lie at another host, as those of the public one do.
type Site struct {
	t       testing.TB
	Commit  string
	Files   map[string]string // contents; those of *.safetensors are in LFS
	Gated   bool
	Damage  atomic.Int32 // so many large files come with a wrong byte
	CutAt   atomic.Int64 // the connection ends after so many bytes of a large file, once; 0: it does not
	NoRange bool
	Asked   atomic.Int32 // requests
	Ranges  []string     // of large files
	mu      sync.Mutex
	Hub     *httptest.Server
	Store   *httptest.Server
}

// New serves files, the contents by their names, until the test ends.
func New(t testing.TB, commit string, files map[string]string) *Site {
	s := &Site{t: t, Commit: commit, Files: files}
	s.Hub = httptest.NewServer(http.HandlerFunc(s.serve))
	s.Store = httptest.NewServer(http.HandlerFunc(s.content))
	t.Cleanup(s.Hub.Close)
	t.Cleanup(s.Store.Close)
	return s
}

func (s *Site) serve(w http.ResponseWriter, r *http.Request) {
	s.Asked.Add(1)
	fail := func(code string, status int) {
		w.Header().Set("X-Error-Code", code)
		http.Error(w, code, status)
	}
	rest, api := strings.CutPrefix(r.URL.Path, "/api/models/org/tiny/revision/")
	name, file := strings.CutPrefix(r.URL.Path, "/org/tiny/resolve/"+s.Commit+"/")
	switch {
	case s.Gated && r.Header.Get("Authorization") != "Bearer secret":
		fail("GatedRepo", http.StatusForbidden)
	case api && rest != "main" && rest != "v1" && rest != "refs/pr/1" && rest != s.Commit:
		fail("RevisionNotFound", http.StatusNotFound)
	case api:
		type lfs struct {
			SHA256 string `json:"sha256"`
			Size   int    `json:"size"`
		}
		var list []map[string]any
		for name, text := range s.Files {
			git := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(text), text))
			f := map[string]any{"rfilename": name, "size": len(text), "blobId": hex.EncodeToString(git[:])}
			if large(name) {
				sum := sha256.Sum256([]byte(text))
				f["lfs"] = lfs{hex.EncodeToString(sum[:]), len(text)}
			}
			list = append(list, f)
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"sha": s.Commit, "siblings": list}); err != nil {
			s.t.Error(err)
		}
	case file && large(name):
		http.Redirect(w, r, s.Store.URL+"/"+name, http.StatusFound)
	case file && s.Files[name] != "":
		fmt.Fprint(w, s.Files[name])
	default:
		fail("RepoNotFound", http.StatusUnauthorized)
	}
}

func large(name string) bool { return strings.HasSuffix(name, ".safetensors") }

// content serves the large files.
func (s *Site) content(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		s.t.Error("the token goes to another host")
	}
	text := s.Files[strings.TrimPrefix(r.URL.Path, "/")]
	s.mu.Lock()
	s.Ranges = append(s.Ranges, r.Header.Get("Range"))
	s.mu.Unlock()
	if s.Damage.Add(-1) >= 0 {
		text = "X" + text[1:]
	}
	if n := s.CutAt.Swap(0); n > 0 {
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		fmt.Fprint(w, text[:n])
		panic(http.ErrAbortHandler)
	}
	var from int
	if n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); n == 1 && !s.NoRange {
		w.WriteHeader(http.StatusPartialContent)
		text = text[from:]
	}
	fmt.Fprint(w, text)
}
