package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/serve"
)

// textKeyVariable has the key of --text-url.
const textKeyVariable = "GEOALIGN_TEXT_KEY"

// serveFlags are the flags of serve.
type serveFlags struct {
	config configFlags
	quiet  bool

	address    string
	admin      string
	public     bool
	tokenFile  string
	tlsCert    string
	tlsKey     string
	roots      []string
	checkpoint string
	texts      serve.TextServer
	noModel    bool
	writable   bool
	mcp        bool
	in         string
	index      indexFlags
	bodyMiB    int
	limits     serve.Limits

	before func(ctx context.Context) error // the gallery is opened, and at each reload; nil: nothing is done
}

func newServeCommand() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve GALLERY",
		Short: "Serve searches of a gallery over HTTP: a page and an API",
		Long: `serve opens a gallery that embed wrote, or a file of features, and answers searches: a
page for people at /, and an API in JSON.

  POST /v1/search          {"text": "a red circle", "k": 10}; instead of text image (base64
                           of a file), vector (numbers), row, or text_features and
                           image_features (numbers of the encoders whose features the
                           model reads); "exact": true uses no index
  PUT  /v1/items           with --writable: rows by their ids
  DELETE /v1/items         with --writable: by their ids or a filter
  GET  /v1/info            what is served, and limits
  GET  /v1/items/ID        name or caption of a row
  GET  /v1/thumbnails/ID   its image, small
  GET  /healthz, /readyz   is it alive, should requests come here

and at the address of --admin, which has connections of its own:

  POST /v1/reload          opens the gallery anew
  GET  /metrics            figures for Prometheus
  GET  /healthz, /readyz   as above

It listens to this machine alone, or at a socket that this user alone may connect to
(--listen unix:PATH). --public lets others ask: give it a token (--token-file, or the variable
GEOALIGN_TOKEN) and TLS (--tls-cert, --tls-key), or put a proxy before it. Texts and images of
queries are encoded by the checkpoint that the gallery names, or by --checkpoint, and texts of a
gallery of another program's vectors by the server that --text-url names. Queries that come at
the same time are encoded and searched for together.

--mcp listens nowhere: a program with a language model starts serve and calls its tools, search
and explain, over standard input and output (Model Context Protocol).

SIGHUP or POST /v1/reload opens the gallery anew, and requests in progress end with the one
they began with. Ctrl-C or SIGTERM ends it after the requests in progress.`,
		Example: `  trainer serve runs/quickstart/embeddings-test
  trainer serve gallery --listen 127.0.0.1:9000
  trainer serve gallery --checkpoint runs/flickr8k --max-k 50
  trainer serve image.npy                              rows and vectors alone
  trainer serve gallery --admin 127.0.0.1:8081
  trainer serve gallery --mcp
  trainer serve gallery --listen 0.0.0.0:8443 --public --token-file token --tls-cert cert.pem --tls-key key.pem
  curl -d '{"text": "a red circle", "k": 3}' -H 'Content-Type: application/json' localhost:8080/v1/search
  curl -X POST localhost:8081/v1/reload`,
		Args: oneGallery,
		RunE: func(c *cobra.Command, args []string) error { return f.execute(c, args[0]) },
	}
	f.add(c)
	return c
}

// add declares the flags on c.
func (f *serveFlags) add(c *cobra.Command) {
	f.config.add(c)
	overCheckpoint(c)
	f.config.addPrompt(c)
	c.Flags().BoolVar(&f.quiet, "quiet", false, "no messages and no progress")
	c.Flags().StringVar(&f.address, "listen", "127.0.0.1:8080",
		"`address` to listen at, HOST:PORT or unix:PATH; port 0 takes a free one")
	c.Flags().StringVar(&f.admin, "admin", "",
		"`address` for reloads, figures and health; without it there are no reloads but by SIGHUP and no figures")
	c.Flags().StringVar(&f.tokenFile, "token-file", "",
		"`file` with a token a line, one of which a client has to show (Authorization: Bearer TOKEN)")
	c.Flags().StringVar(&f.tlsCert, "tls-cert", "", "PEM `file` of the certificate, with those up to the root's")
	c.Flags().StringVar(&f.tlsKey, "tls-key", "", "PEM `file` of its key")
	c.Flags().StringArrayVar(&f.roots, "images-root", nil,
		"`folder` that thumbnails may be read from beside that of the gallery's images (repeatable)")
	c.Flags().BoolVar(&f.public, "public", false,
		"listen to other machines too: everybody who can reach the address may search")
	addGalleryFlags(c, &f.checkpoint, &f.in, &f.index)
	c.Flags().StringVar(&f.texts.URL, "text-url", "",
		"`URL` of a server that encodes texts, in the form of OpenAI's /v1/embeddings; its key is the variable "+textKeyVariable)
	c.Flags().StringVar(&f.texts.Model, "text-model", "", "`name` of the model that requests to --text-url ask for")
	c.Flags().BoolVar(&f.noModel, "no-model", false, "open no checkpoint: queries are rows and vectors")
	c.Flags().BoolVar(&f.writable, "writable", false, "let clients put and delete rows")
	c.Flags().BoolVar(&f.mcp, "mcp", false,
		"answer the program that starts this one over the Model Context Protocol, on standard input and output")
	c.Flags().IntVar(&f.limits.K, "max-k", 100, "most hits of a query")
	c.Flags().IntVar(&f.limits.Requests, "max-requests", 256, "requests answered at once; more get 503")
	c.Flags().IntVar(&f.limits.PerClient, "max-per-client", 128, "of them, those of one address; more get 429")
	c.Flags().IntVar(&f.limits.Conns, "max-conns", 1024,
		"connections open at once; one more takes the place of an idle one, or waits")
	c.Flags().IntVar(&f.limits.EachConns, "max-conns-per-client", 256,
		"of them, those of one address; one more takes the place of an idle one, or gets 429")
	c.Flags().IntVar(&f.bodyMiB, "max-body", 8, "size of a request in `MiB`")
	c.Flags().IntVar(&f.limits.Pixels, "max-pixels", 25_000_000, "pixels of an image of a query or a thumbnail")
	c.Flags().DurationVar(&f.limits.Answer, "timeout", 30*time.Second, "time that an answer may take")
}

// check refuses values that no server can have.
func (f *serveFlags) check(c *cobra.Command) error {
	for name, v := range map[string]int{
		"max-k": f.limits.K, "max-requests": f.limits.Requests, "max-per-client": f.limits.PerClient,
		"max-conns": f.limits.Conns, "max-conns-per-client": f.limits.EachConns,
		"max-body": f.bodyMiB, "max-pixels": f.limits.Pixels,
	} {
		if v < 1 {
			return usageError{fmt.Errorf("--%s must be at least 1 (got %d)", name, v)}
		}
	}
	switch {
	case f.bodyMiB > 1024:
		return usageError{fmt.Errorf("--max-body must be at most 1024 MiB (got %d)", f.bodyMiB)}
	case f.limits.Answer < time.Millisecond:
		return usageError{fmt.Errorf("--timeout must be at least 1ms (got %v)", f.limits.Answer)}
	}
	if err := f.index.check(c); err != nil {
		return err
	}
	for _, one := range []string{"no-model", "text-url"} {
		if err := apart(c, one, "checkpoint", "config", "set", "seed"); err != nil {
			return err
		}
	}
	if err := apart(c, "no-model", "text-url"); err != nil {
		return err
	}
	switch u, err := url.Parse(f.texts.URL); {
	case f.texts.URL == "" && f.texts.Model != "":
		return usageError{errors.New("--text-model is of --text-url: name a server")}
	case f.texts.URL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == ""):
		return usageError{fmt.Errorf("--text-url must be an address as http://127.0.0.1:8081/v1/embeddings (got %q)", f.texts.URL)}
	}
	f.texts.Key = os.Getenv(textKeyVariable)
	if err := apart(c, "mcp", "listen", "admin", "public", "token-file", "tls-cert", "tls-key", "writable"); err != nil {
		return err
	}
	f.limits.Body = int64(f.bodyMiB) << 20
	if (f.tlsCert == "") != (f.tlsKey == "") {
		return usageError{errors.New("--tls-cert and --tls-key belong together: give both")}
	}
	here, err := local(f.address)
	switch {
	case err != nil:
		return usageError{fmt.Errorf("--listen %w", err)}
	case !here && !f.public:
		return usageError{fmt.Errorf("--listen %s can be reached from other machines: add --public to allow that, or listen at 127.0.0.1", f.address)}
	case f.admin == "":
		return nil
	}
	here, err = local(f.admin)
	switch {
	case err != nil:
		return usageError{fmt.Errorf("--admin %w", err)}
	case !here && (!f.public || f.tokenFile == "" && os.Getenv(tokenVariable) == ""):
		return usageError{fmt.Errorf("--admin %s can be reached from other machines: add --public and --token-file to allow that, or listen at 127.0.0.1", f.admin)}
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
		if f.before != nil {
			if err := f.before(ctx); err != nil {
				return nil, err
			}
		}
		s, err := serve.Open(ctx, path, serve.OpenOptions{
			Checkpoint: f.checkpoint, Texts: f.texts, NoModel: f.noModel, Writable: f.writable, Side: f.in, MaxPixels: f.limits.Pixels, Roots: f.roots,
			Run:   opening(c, &f.config, f.quiet),
			Index: f.index.options(bar, note),
		})
		if err == nil {
			f.index.noteUnused(note, s.Gallery.Rows(s.Side))
		}
		return s, err
	}
	if f.mcp {
		return f.serveMCP(c, serve.Options{Open: open, Limits: f.limits, Log: note})
	}
	o := serve.Options{Open: open, Public: f.public, Limits: f.limits, Log: note}
	var err error
	if o.Tokens, err = readTokens(f.tokenFile); err != nil {
		return err
	}
	if o.TLS, err = readTLS(f.tlsCert, f.tlsKey); err != nil {
		return err
	}
	l, err := listen(f.address) // before the work
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer l.Close()
	var admin net.Listener
	if f.admin != "" {
		if admin, err = listen(f.admin); err != nil {
			return fmt.Errorf("--admin: %w", err)
		}
		defer admin.Close()
	}
	if here, _ := local(f.address); !here && o.TLS == nil {
		fmt.Fprintln(note, "note: queries, answers and tokens can be read on their way to other machines: --tls-cert and --tls-key encrypt them, if no proxy does")
	}
	s, err := serve.New(c.Context(), o)
	if err != nil {
		return err
	}
	info := s.Source()
	reload := func() { go s.Reload(c.Context()) } // which says what happens
	onHangup.Store(&reload)
	defer onHangup.Store(nil)
	fmt.Fprintf(c.OutOrStdout(), "serving %s of %s at %s\n", words.Count(info.Gallery.Rows(info.Side), info.Side), path,
		describeListener(l, o.TLS != nil))
	if admin != nil {
		fmt.Fprintf(c.OutOrStdout(), "reloads and figures at %s\n", describeListener(admin, o.TLS != nil))
	}
	if err := s.Serve(c.Context(), l, admin); err != nil && err != http.ErrServerClosed {
		return err
	}
	fmt.Fprintln(note, "stopped")
	return nil
}
