package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/serve"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	config configFlags
	quiet  bool

	address    string
	public     bool
	checkpoint string
	noModel    bool
	in         string
	indexFrom  int
	recall     float64
	bodyMiB    int
	limits     serve.Limits
}

func newServeCommand() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve GALLERY",
		Short: "Answer searches of an embedded gallery over HTTP",
		Long: `serve opens a gallery that embed wrote, or a file of features, and answers searches: a
page for people at /, and an API in JSON.

  POST /v1/search          {"text": "a red circle", "k": 10}; instead of text image (base64
                           of a file), vector (numbers), row, or text_features and
                           image_features (numbers of the encoders whose features the
                           model reads); "exact": true uses no index
  GET  /v1/info            what is served, and limits
  GET  /v1/items/N         name or caption of row N
  GET  /v1/thumbnails/N    its image, small
  POST /v1/reload          opens the gallery anew, asked for from this machine alone
  GET  /healthz, /readyz   is it alive, should requests come here
  GET  /metrics            figures for Prometheus

It listens to this machine alone. --public lets others ask; put a proxy with TLS and
passwords before it, since it has none. Texts and images of queries are encoded by the
checkpoint that the gallery names, or by --checkpoint. Queries that come at the same time
are encoded and searched for together.

SIGHUP or POST /v1/reload opens the gallery anew, and requests in progress end with the one
they began with. Ctrl-C or SIGTERM ends it after the requests in progress.`,
		Example: `  trainer serve runs/quickstart/embeddings-test
  trainer serve gallery --listen 127.0.0.1:9000
  trainer serve gallery --checkpoint runs/flickr8k --max-k 50
  trainer serve image.npy                              rows and vectors alone
  curl -d '{"text": "a red circle", "k": 3}' -H 'Content-Type: application/json' localhost:8080/v1/search`,
		Args: oneGallery,
		RunE: func(c *cobra.Command, args []string) error { return f.execute(c, args[0]) },
	}
	f.config.add(c)
	overCheckpoint(c)
	c.Flags().BoolVar(&f.quiet, "quiet", false, "no messages and no progress")
	c.Flags().StringVar(&f.address, "listen", "127.0.0.1:8080", "`address` to listen at; port 0 takes a free one")
	c.Flags().BoolVar(&f.public, "public", false, "listen to other machines too: everybody who can reach the address may search")
	addGalleryFlags(c, &f.checkpoint, &f.in, &f.indexFrom)
	c.Flags().BoolVar(&f.noModel, "no-model", false, "open no checkpoint: queries are rows and vectors")
	c.Flags().Float64Var(&f.recall, "recall", 0, "`share` of the nearest rows that an index is to find (default 0.95)")
	c.Flags().IntVar(&f.limits.K, "max-k", 100, "most hits of a query")
	c.Flags().IntVar(&f.limits.Requests, "max-requests", 256, "requests answered at once; more get 503")
	c.Flags().IntVar(&f.limits.PerClient, "max-per-client", 128, "of them, those of one address; more get 429")
	c.Flags().IntVar(&f.bodyMiB, "max-body", 8, "size of a request in `MiB`")
	c.Flags().IntVar(&f.limits.Pixels, "max-pixels", 25_000_000, "pixels of an image of a query or a thumbnail")
	c.Flags().DurationVar(&f.limits.Answer, "timeout", 30*time.Second, "time that an answer may take")
	return c
}

// check refuses values that no server can have.
func (f *serveFlags) check(c *cobra.Command) error {
	for name, v := range map[string]int{"max-k": f.limits.K, "max-requests": f.limits.Requests, "max-per-client": f.limits.PerClient, "max-body": f.bodyMiB, "max-pixels": f.limits.Pixels, "index-from": f.indexFrom} {
		if v < 1 {
			return usageError{fmt.Errorf("--%s must be at least 1 (got %d)", name, v)}
		}
	}
	switch {
	case f.bodyMiB > 1024:
		return usageError{fmt.Errorf("--max-body must be at most 1024 MiB (got %d)", f.bodyMiB)}
	case f.limits.Answer < time.Millisecond:
		return usageError{fmt.Errorf("--timeout must be at least 1ms (got %v)", f.limits.Answer)}
	case c.Flags().Changed("recall") && !(f.recall > 0 && f.recall <= 1):
		return usageError{fmt.Errorf("--recall must be above 0 and at most 1 (got %v)", f.recall)}
	}
	if err := apart(c, "no-model", "checkpoint", "config", "set", "seed"); err != nil {
		return err
	}
	f.limits.Body = int64(f.bodyMiB) << 20
	host, _, err := net.SplitHostPort(f.address)
	if err != nil {
		return usageError{fmt.Errorf("--listen must be HOST:PORT, as in 127.0.0.1:8080 (got %q)", f.address)}
	}
	if ip := net.ParseIP(host); !f.public && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return usageError{fmt.Errorf("--listen %s can be reached from other machines: add --public to allow that, or listen at 127.0.0.1", f.address)}
	}
	return nil
}

func (f *serveFlags) execute(c *cobra.Command, path string) error {
	if err := f.check(c); err != nil {
		return err
	}
	out := outputFlags{quiet: f.quiet}
	note, bar := out.note(c), newPhaseBar(c.ErrOrStderr(), f.quiet)
	defer bar.done()
	open := func(ctx context.Context) (*serve.Source, error) {
		defer bar.done()
		return serve.Open(ctx, path, serve.OpenOptions{
			Checkpoint: f.checkpoint, NoModel: f.noModel, Side: f.in, MaxPixels: f.limits.Pixels,
			Run: opening(c, &f.config, f.quiet),
			Index: gallery.IndexOptions{From: f.indexFrom, Recall: f.recall,
				Progress: func(stage string, done, of int) { bar.show("index: "+stage, done, of) },
				Say:      func(format string, args ...any) { fmt.Fprintf(note, "note: "+format+"\n", args...) }},
		})
	}
	l, err := net.Listen("tcp", f.address) // before the work
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer l.Close()
	s, err := serve.New(c.Context(), serve.Options{Open: open, Public: f.public, Limits: f.limits, Log: note})
	if err != nil {
		return err
	}
	info := s.Source()
	reload := func() { go s.Reload(c.Context()) } // which says what happens
	onHangup.Store(&reload)
	defer onHangup.Store(nil)
	fmt.Fprintf(c.OutOrStdout(), "serving %s of %s at http://%s/\n", words.Count(info.Gallery.Rows(info.Side), info.Side), path, l.Addr())
	if err := s.Serve(c.Context(), l); err != nil && err != http.ErrServerClosed {
		return err
	}
	fmt.Fprintln(note, "stopped")
	return nil
}
