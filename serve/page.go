package serve

import (
	"embed"
	"net/http"
)

// pageFiles are the page: no part of it comes from anywhere else.
//
//go:embed page
var pageFiles embed.FS

// pages are the files by the path of a request, with their types.
var pages = map[string]struct{ file, kind string }{
	"/":          {"page/index.html", "text/html; charset=utf-8"},
	"/app.js":    {"page/app.js", "text/javascript; charset=utf-8"},
	"/style.css": {"page/style.css", "text/css; charset=utf-8"},
}

// description is that of the API, by OpenAPI.
//
//go:embed openapi.json
var description []byte

// describe answers GET /openapi.json.
func (s *Server) describe(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	_, err := w.Write(description)
	return ignore(err)
}

// page answers with a file of the page.
func (s *Server) page(w http.ResponseWriter, r *http.Request) error {
	p := pages[r.URL.Path]
	b, err := pageFiles.ReadFile(p.file)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", p.kind)
	w.Header().Set("Cache-Control", "no-cache")
	_, err = w.Write(b)
	return ignore(err)
}
