package serve

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/geoalign/geoalign/internal/words"
)

// Names of routes in the metrics.
const (
	routeSearch = "search"
	routeOther  = "other"
)

// routes returns the handler of all requests.
func (s *Server) routes() http.Handler {
	r := s.newRouter("GET / is the page, docs/serve.md lists the others")
	r.add("GET /{$}", "page", s.page)
	r.add("GET /app.js", "page", s.page)
	r.add("GET /style.css", "page", s.page)
	r.add("GET /openapi.json", "describe", s.describe)
	r.add("POST /v1/search", routeSearch, s.limited(s.authorized(s.search)))
	r.add("POST /v1/embeddings", "embeddings", s.limited(s.authorized(s.embeddings)))
	r.add("GET /v1/info", "info", s.limited(s.authorized(s.info)))
	r.add("GET /v1/items/{id...}", "items", s.limited(s.authorized(s.item)))
	r.add("PUT /v1/items", "put", s.limited(s.authorized(s.put)))
	r.add("DELETE /v1/items", "delete", s.limited(s.authorized(s.remove)))
	r.add("GET /v1/thumbnails/{id...}", "thumbnails", s.limited(s.authorized(s.thumbnail)))
	r.health()
	moved := func(http.ResponseWriter, *http.Request) error {
		return &failure{http.StatusForbidden,
			"this is answered at the address of --admin alone, which the server is started with; a reload is also asked for by SIGHUP"}
	}
	r.mux.Handle("/v1/reload", s.measured(routeOther, moved))
	r.mux.Handle("/metrics", s.measured(routeOther, moved))
	return r.handler()
}

// adminRoutes returns the handler of what is asked by who runs the server.
func (s *Server) adminRoutes() http.Handler {
	r := s.newRouter("POST /v1/reload, GET /metrics, /healthz and /readyz are answered here, searches at the address of --listen")
	r.add("POST /v1/reload", "reload", s.authorized(s.askedReload))
	r.add("GET /metrics", "metrics", s.authorized(s.figures))
	r.health()
	return r.handler()
}

// router collects routes.
type router struct {
	s       *Server
	mux     *http.ServeMux
	methods map[string][]string // by path
}

// newRouter answers paths that are none with a hint.
func (s *Server) newRouter(hint string) *router {
	r := &router{s, http.NewServeMux(), map[string][]string{}}
	r.mux.Handle("/", s.measured(routeOther, func(_ http.ResponseWriter, r *http.Request) error {
		return &failure{http.StatusNotFound,
			"there is no " + cut(r.Method, 20) + " " + strconv.Quote(cut(r.URL.Path, 100)) + ": " + hint}
	}))
	return r
}

// add answers a method of a path, and refuses the other methods.
func (r *router) add(pattern, route string, h func(w http.ResponseWriter, r *http.Request) error) {
	r.mux.Handle(pattern, r.s.measured(route, h))
	method, path, _ := strings.Cut(pattern, " ")
	r.s.patterns = append(r.s.patterns, pattern)
	if r.methods[path] = append(r.methods[path], method); len(r.methods[path]) > 1 {
		return
	}
	r.mux.Handle(path, r.s.measured(routeOther, func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Allow", strings.Join(r.methods[path], ", "))
		return &failure{http.StatusMethodNotAllowed, "use " + strings.Join(r.methods[path], " or ") + " here"}
	}))
}

// health adds what says whether the server lives.
func (r *router) health() {
	r.add("GET /healthz", "health", func(w http.ResponseWriter, _ *http.Request) error { return plain(w, "ok\n") })
	r.add("GET /readyz", "health", r.s.ready)
}

// handler guards the routes.
func (r *router) handler() http.Handler {
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fail(w, &failure{http.StatusForbidden, "a page of another site may not ask this"})
	}))
	return r.s.headers(guard.Handler(r.mux))
}

// cut shortens a text.
func cut(text string, most int) string {
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}

// failure is an error for a client.
type failure struct {
	code int
	text string
}

// Error is what the client is told.
func (f *failure) Error() string { return f.text }

// fail answers with an error.
func fail(w http.ResponseWriter, f *failure) {
	if f.code == http.StatusServiceUnavailable || f.code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	reply(w, f.code, struct {
		Error string `json:"error"`
	}{words.Cut(f.text, 1000)})
}

// reply answers with JSON. That a client has left is no error.
func reply(w http.ResponseWriter, code int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		code, b = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	w.Write(append(b, '\n'))
}

func plain(w http.ResponseWriter, text string) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, err := w.Write([]byte(text))
	return ignore(err)
}

// ignore drops the error of a write to a client, who may have left.
func ignore(error) error { return nil }

// policy lets the page load from this server alone, and no other page show it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// headers sets what all answers have, and refuses requests under a foreign name.
func (s *Server) headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		if !s.o.Public && !localName(r.Host) {
			fail(w, &failure{http.StatusForbidden,
				"the server answers under names of this machine alone, such as localhost: start it with --public to serve others"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// localName says whether the Host of a request is this machine.
func localName(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if n := len(host); n > 2 && host[0] == '[' && host[n-1] == ']' {
		host = host[1 : n-1]
	}
	if host = strings.TrimSuffix(host, "."); strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// recorder notes the status of an answer.
type recorder struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) {
	if r.code == 0 {
		r.code = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// measured counts requests of a route and answers with the errors of h.
func (s *Server) measured(route string, h func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec, start := &recorder{ResponseWriter: w}, time.Now()
		s.metrics.begin()
		defer func() {
			if p := recover(); p != nil {
				s.say("%s failed: %v", route, p)
				if rec.code == 0 {
					fail(rec, &failure{http.StatusInternalServerError, "the request failed"})
				}
			}
			s.metrics.end(route, rec.code, time.Since(start))
		}()
		err := h(rec, r)
		if err == nil {
			return
		}
		f, ok := errors.AsType[*failure](err)
		if !ok {
			s.say("%s: %v", route, err) // which may name files
			f = &failure{http.StatusInternalServerError, "the request failed: the server's log says why"}
		}
		fail(rec, f)
	})
}

// limited lets as many requests in as there is room for.
func (s *Server) limited(h func(w http.ResponseWriter, r *http.Request) error) func(w http.ResponseWriter,
	r *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		addr := addressOf(r.RemoteAddr)
		switch code := s.gate.enter(addr); code {
		case http.StatusTooManyRequests:
			s.metrics.refuse("client")
			return &failure{code, "this client has too many requests in progress: ask again in a second"}
		case http.StatusServiceUnavailable:
			s.metrics.refuse("server")
			return &failure{code, "the server has too many requests in progress: ask again in a second"}
		}
		defer s.gate.leave(addr)
		return h(w, r)
	}
}

// ready says whether new requests should come here.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) error {
	if s.stopping.Load() {
		return &failure{http.StatusServiceUnavailable, errStopping.Error()}
	}
	return plain(w, "ready\n")
}

// figures writes the metrics.
func (s *Server) figures(w http.ResponseWriter, _ *http.Request) error {
	x := s.current.acquire()
	defer s.current.release(x)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	s.metrics.write(w, x.own.Rows(), len(s.batcher.queue))
	return nil
}

// askedReload answers POST /v1/reload.
func (s *Server) askedReload(w http.ResponseWriter, r *http.Request) error {
	control := http.NewResponseController(w)
	ignore(control.SetWriteDeadline(time.Time{})) // an index may be built
	x, err := s.reload(r.Context())
	if err != nil {
		return &failure{http.StatusInternalServerError,
			"the reload failed and the gallery in use stays: " + err.Error()}
	}
	reply(w, http.StatusOK, struct {
		Gallery string `json:"gallery"`
		Rows    int    `json:"rows"`
	}{x.Gallery.ID, x.own.Rows()})
	return nil
}
