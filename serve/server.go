package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/geoalign/geoalign/internal/process"
	"github.com/geoalign/geoalign/internal/words"
)

// Server answers searches of a gallery.
type Server struct {
	o        Options
	current  current
	batcher  *batcher
	metrics  *metrics
	gate     *gate
	bodies   slots // large requests
	decoders slots // images being decoded
	handler  http.Handler
	admin    http.Handler
	tokens   tokens
	patterns []string // of all routes

	reloading sync.Mutex
	merges    sync.WaitGroup
	notBefore time.Time          // of the next merge, guarded by reloading
	ending    context.CancelFunc // of merges
	ended     context.Context
	stopping  atomic.Bool
	logging   sync.Mutex
	stop      func()
}

// New opens the gallery of o. Close the server after use; Serve does.
func New(ctx context.Context, o Options) (*Server, error) {
	o.Limits.setDefaults()
	if o.Log == nil {
		o.Log = io.Discard
	}
	l := o.Limits
	s := &Server{o: o, metrics: newMetrics(), bodies: make(slots, l.Bodies), decoders: make(slots, decoders),
		tokens: newTokens(o.Tokens)}
	s.gate = &gate{of: map[string]int{}, most: l.Requests, each: l.PerClient}
	s.current.say = s.say
	s.ended, s.ending = context.WithCancel(context.Background())
	s.batcher = &batcher{queue: make(chan *query, l.Requests), stop: make(chan struct{}), most: l.Batch,
		timeout: l.Answer, images: make(slots, l.Bodies), current: &s.current, metrics: s.metrics, say: s.say}
	if _, err := s.open(ctx); err != nil {
		return nil, err
	}
	s.handler, s.admin = s.routes(), s.adminRoutes()
	done := make(chan struct{})
	go func() { defer close(done); s.batcher.run() }()
	s.stop = sync.OnceFunc(func() {
		close(s.batcher.stop)
		<-done
		for _, q := range s.batcher.waiting(l.Requests) {
			q.answer <- answer{err: errStopping}
			s.batcher.free(q)
		}
	})
	return s, nil
}

// say writes a message in one line, whatever names of files, of items and of clients are in it: none can look like
// another message, and none does anything to a terminal.
func (s *Server) say(format string, args ...any) {
	text := words.Inline(strings.TrimRight(fmt.Sprintf(format, args...), "\n"))
	s.logging.Lock()
	defer s.logging.Unlock()
	fmt.Fprintln(s.o.Log, text)
}

// open makes what Options.Open opens the source of new requests.
func (s *Server) open(ctx context.Context) (*snapshot, error) {
	src, err := s.o.Open(ctx)
	if err != nil {
		return nil, err
	}
	var x *snapshot
	if src.Writer != nil && s.o.Public && len(s.o.Tokens) == 0 {
		err = errors.New("other machines may not change a gallery without a token: give one with --token-file")
	} else {
		x, err = newSnapshot(src)
	}
	if err == nil && !s.current.change(x) {
		err = errStopping
	}
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	return x, nil
}

// Reload opens the gallery anew for the requests that come from then on. Where that fails, as that of a server that was
// closed meanwhile, the one in use stays.
func (s *Server) Reload(ctx context.Context) error {
	_, err := s.reload(ctx)
	return err
}

// reload is Reload and returns what is in use then.
func (s *Server) reload(ctx context.Context) (*snapshot, error) {
	if src := s.Source(); src.Writer != nil {
		err := errors.New("a gallery that the server changes is not opened anew: end the server and start it again")
		s.say("reload failed: %v", err)
		return nil, err
	}
	s.reloading.Lock()
	defer s.reloading.Unlock()
	x, err := s.open(ctx)
	if err != nil {
		s.metrics.reload("failed")
		s.say("reload failed, the gallery in use stays: %v", err)
		return nil, err
	}
	s.metrics.reload("done")
	s.say("reloaded: gallery %s of %d rows", x.Gallery.ID, x.own.Rows())
	return x, nil
}

// Handler answers requests, for a server of the caller's own.
func (s *Server) Handler() http.Handler { return s.handler }

// Admin answers requests of who runs the server: reloads, health and figures.
func (s *Server) Admin() http.Handler { return s.admin }

// Serve answers requests that come to l, and those of Admin that come to admin if that is not nil, until ctx ends, then
// those that are in progress, for Limits.Drain at most. It closes the server. The error is that of a listener.
func (s *Server) Serve(ctx context.Context, l, admin net.Listener) (err error) {
	defer process.Hold()() // until what is in progress is answered
	defer func() { err = errors.Join(err, s.Close()) }()
	limits := s.o.Limits
	failed := make(chan error, 2)
	main := s.listen(l, s.handler, failed)
	behind := main // ends last: who asks whether the server is ready is told that it stops
	if admin != nil {
		behind = s.listen(admin, s.admin, failed)
	}
	select {
	case err = <-failed:
		return errors.Join(err, main.Close(), behind.Close())
	case <-ctx.Done():
	}
	s.stopping.Store(true)
	drain, cancel := context.WithTimeout(context.Background(), limits.Drain)
	defer cancel()
	for _, h := range []*http.Server{main, behind} {
		if err := h.Shutdown(drain); err != nil {
			s.say("requests were still in progress after %v and are cut off", limits.Drain)
			h.Close()
		}
	}
	return nil
}

// listen starts to answer what comes to a listener, each with room for connections of its own.
func (s *Server) listen(l net.Listener, handler http.Handler, failed chan<- error) *http.Server {
	limits := s.o.Limits
	bounded := newConns(l, limits.Conns, limits.EachConns, s.metrics.refuse)
	h := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: min(5*time.Second, limits.Read),
		ReadTimeout:       limits.Read,
		WriteTimeout:      limits.Read + limits.Answer,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.New(quietLog{s}, "", 0),
		ConnState:         bounded.state,
	}
	if s.o.TLS != nil && l.Addr().Network() != "unix" {
		h.TLSConfig = s.o.TLS.Clone()
		go func() { failed <- h.ServeTLS(bounded, "", "") }()
	} else {
		go func() { failed <- h.Serve(bounded) }()
	}
	return h
}

// Close ends the server. Requests must have ended.
func (s *Server) Close() error {
	s.stopping.Store(true)
	s.ending()
	s.merges.Wait()
	s.stop()
	s.current.change(nil)
	return nil
}

// quietLog passes messages of net/http on, but for what any client can cause.
type quietLog struct{ s *Server }

// Write implements io.Writer.
func (q quietLog) Write(b []byte) (int, error) {
	if text := string(b); !strings.Contains(text, "TLS handshake") && !strings.Contains(text, "superfluous") {
		q.s.say("%s", text)
	}
	return len(b), nil
}

// Source returns what is served now. It may be replaced and closed at any time.
func (s *Server) Source() *Source {
	x := s.current.acquire()
	defer s.current.release(x)
	return x.Source
}
