package serve

import (
	"context"
	"crypto/tls"
	"io"
	"runtime"
	"time"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/gallery"
)

// Options say what is served and how.
type Options struct {
	// Open opens what is served, at the start and for every reload.
	Open func(ctx context.Context) (*Source, error)
	// Public says that other machines may ask: requests under any name are answered.
	Public bool
	// Tokens are what a client may show (Authorization: Bearer TOKEN); none: nobody has to. The page itself, /healthz
	// and /readyz need none.
	Tokens []string
	// TLS is of all listeners but sockets of this machine; nil: none.
	TLS    *tls.Config
	Limits Limits
	Log    io.Writer // messages; nil: none
}

// Source is a gallery with what encodes queries for it. The server closes it.
type Source struct {
	Gallery *gallery.Gallery
	Side    string // whose rows are searched: gallery.Image or gallery.Text
	Engine  *compute.Engine
	Encoder Encoder // nil: queries are rows and vectors
	// Picture returns the image of a row, and may be called from several goroutines; nil: rows
	// have none.
	Picture func(row int) (*transform.Image, error)
	Close   func() error

	// Writer changes the gallery, and Next returns the source of what it was merged to, with the same encoder; nil: the
	// server changes nothing. Both belong together.
	Writer *gallery.Writer
	Next   func(ctx context.Context, g *gallery.Gallery) (*Source, error)
}

// Encoder encodes queries; *run.Queries is one. Reads, Tokens and Width may be called from any
// goroutine, the others are called from one.
type Encoder interface {
	// Reads says why a side (gallery.Text, gallery.Image) cannot be asked by, nil where it can.
	Reads(side string) error
	// Tokens returns how many tokens a text has, an error where nothing of it is left to encode.
	Tokens(text string) (int, error)
	// Texts returns features (n, C).
	Texts(ctx context.Context, texts []string) ([]float32, error)
	// Images returns features (n, C) as they are compared with images, and as with texts.
	Images(ctx context.Context, images []*transform.Image) (own, folded []float32, err error)
	// Width returns the numbers of a row of stored features of a side, 0 where the model reads none.
	Width(side string) int
	// Features maps rows of stored features of a side (n, D) to features (n, C) as they are compared with
	// that side, and as with the other one.
	Features(ctx context.Context, side string, x []float32) (own, folded []float32, err error)
}

// Limits bound what clients may ask for. Zero values are the defaults.
type Limits struct {
	Body      int64 // bytes of a request; 8 MiB
	Pixels    int   // of an image of a request or a thumbnail; 25 million
	Text      int   // bytes of a text; 4096
	K         int   // hits of a query; 100
	Requests  int   // answered at once; 256. More are refused with 503
	PerClient int   // of them of one address; 128. More are refused with 429
	// large requests read at once, and large images held at once, which bounds memory; 8. More wait, then 503
	Bodies int
	Conns  int // connections; 1024. One more takes the place of an idle one, or waits
	// of them of one address; 256. One more takes the place of an idle one of his, or is refused with 429
	EachConns int
	Batch     int           // queries that are computed together; 64
	Items     int           // of a request that puts or deletes; 1000
	Read      time.Duration // that a request may take to arrive; 15 s
	Answer    time.Duration // that an answer may take, its way to the client included; 30 s
	Drain     time.Duration // that requests may take to end when the server stops; 10 s
}

// setDefaults fills in what is zero.
func (l *Limits) setDefaults() {
	set(&l.Body, 8<<20)
	set(&l.Pixels, 25_000_000)
	set(&l.Text, 4096)
	set(&l.K, 100)
	set(&l.Requests, 256)
	set(&l.PerClient, 128)
	set(&l.Bodies, 8)
	set(&l.Conns, 1024)
	set(&l.EachConns, 256)
	set(&l.Batch, 64)
	set(&l.Items, 1000)
	set(&l.Read, 15*time.Second)
	set(&l.Answer, 30*time.Second)
	set(&l.Drain, 10*time.Second)
}

func set[T int | int64 | time.Duration](v *T, standard T) {
	if *v <= 0 {
		*v = standard
	}
}

// largeBody is the size in bytes from which a request counts as large.
const largeBody = 64 << 10

// largeImage is the size in pixels from which an image counts as large.
const largeImage = 1_000_000

// decoders is how many images are decoded at once.
var decoders = max(1, runtime.GOMAXPROCS(0))
