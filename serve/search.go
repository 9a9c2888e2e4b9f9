package serve

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/strictjson"
)

// defaultK is how many hits a query has that does not say.
const defaultK = 10

// searchRequest is the body of POST /v1/search. Exactly one of the first six is there.
type searchRequest struct {
	Text   *string            `json:"text"`
	Image  *string            `json:"image"` // base64 of a JPEG, PNG, WebP, GIF, BMP or TIFF file
	Vector strictjson.Numbers `json:"vector"`
	Row    *int               `json:"row"`
	// Of the encoders whose stored features the model reads.
	TextFeatures  strictjson.Numbers `json:"text_features"`
	ImageFeatures strictjson.Numbers `json:"image_features"`

	K        *int            `json:"k"`
	Exact    bool            `json:"exact"`
	Filter   json.RawMessage `json:"filter"`    // see gallery.Filter
	Offset   int             `json:"offset"`    // hits that are passed over
	MinScore *float64        `json:"min_score"` // hits below it are left out
	Fields   []string        `json:"fields"`    // of a hit, instead of all that is known of it
	// the features of a hit too, as rows of a side are compared with each other
	WithVector bool `json:"with_vector"`
}

// searchReply is the answer.
type searchReply struct {
	Gallery string  `json:"gallery"` // another one where the contents are others
	Side    string  `json:"side"`    // of the hits
	Metric  string  `json:"metric"`
	Index   bool    `json:"index"`    // not all rows were compared
	Recall  float64 `json:"recall"`   // that was measured of the index; 1 without
	RecallK int     `json:"recall_k"` // neighbours of a query that it was measured with; 0 without
	Millis  float64 `json:"milliseconds"`
	Batch   int     `json:"batch"`          // queries that were computed together
	Rows    *int    `json:"rows,omitempty"` // that the filter chose; none without one
	Hits    []hit   `json:"hits"`
}

// hit is a row that was found.
type hit struct {
	gallery.Item
	Score     float32        `json:"score"`
	Thumbnail string         `json:"thumbnail,omitempty"`
	Fields    map[string]any `json:"fields,omitempty"` // that the request names
	Vector    []float32      `json:"vector,omitempty"` // (C), of with_vector
}

// bad is a failure of what a client asks.
func bad(format string, args ...any) error {
	return &failure{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// search answers POST /v1/search.
func (s *Server) search(w http.ResponseWriter, r *http.Request) error {
	start := time.Now()
	x := s.current.acquire()
	defer s.current.release(x)
	ctx, cancel := context.WithTimeout(r.Context(), s.o.Limits.Answer)
	defer cancel()
	q, in, err := s.parse(ctx, w, r, x)
	if err != nil {
		return err
	}
	if err := s.refused(s.batcher.put(q)); err != nil {
		return err
	}
	a := s.batcher.wait(q)
	if err := s.refused(a.err); err != nil {
		return err
	}
	if in.MinScore != nil {
		a.rows = a.rows[:gallery.Above(a.scores, *in.MinScore)]
	}
	from := min(in.Offset, len(a.rows))
	a.rows, a.scores = a.rows[from:], a.scores[from:]
	v := q.view
	out := searchReply{Gallery: x.Gallery.Version(), Side: x.Side, Metric: string(v.Metric()), Batch: a.batch, Recall: 1,
		Hits: make([]hit, len(a.rows))}
	if q.rows != nil {
		n := len(q.rows)
		out.Rows = &n
	} else if recall, ok := v.Indexed(); ok && !q.exact {
		out.Index, out.Recall, out.RecallK = true, recall, v.RecallK()
	}
	for i, row := range a.rows {
		if out.Hits[i], err = x.hit(int(row)); err != nil {
			return err
		}
		if in.Fields != nil {
			out.Hits[i].Item = gallery.Item{Row: int(row), ID: out.Hits[i].ID}
			if out.Hits[i].Fields, err = x.Gallery.Fields(x.Side, int(row), in.Fields); err != nil {
				return err
			}
		}
		out.Hits[i].Score = a.scores[i]
		if in.WithVector {
			if out.Hits[i].Vector, err = x.Gallery.Row(x.Side, int(row)); err != nil {
				return err
			}
		}
	}
	out.Millis = math.Round(1e5*time.Since(start).Seconds()) / 100
	reply(w, http.StatusOK, out)
	return nil
}

// refused counts an error of the batcher that is no fault of the request, and says when to ask again.
func (s *Server) refused(err error) error {
	switch {
	case errors.Is(err, errBusy), errors.Is(err, errStopping):
		s.metrics.refuse("queue")
		return &failure{http.StatusServiceUnavailable, err.Error()}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		s.metrics.refuse("time")
		return &failure{http.StatusServiceUnavailable, fmt.Sprintf("no answer within %v: ask again later",
			s.o.Limits.Answer)}
	}
	return err
}

// hit describes a row.
func (x *snapshot) hit(row int) (h hit, err error) {
	h.Item, err = x.Gallery.Item(x.Side, row)
	if x.Picture != nil {
		h.Thumbnail = "/v1/thumbnails/" + strconv.Itoa(row)
		if x.Writer != nil { // numbers change with the next merge
			h.Thumbnail = "/v1/thumbnails/" + url.PathEscape(h.ID)
		}
	}
	return h, err
}

// parse reads and checks a request.
func (s *Server) parse(ctx context.Context, w http.ResponseWriter, r *http.Request, x *snapshot) (*query, *searchRequest, error) {
	in, done, err := decode[searchRequest](ctx, s, w, r, searchKeys)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	q, err := s.query(ctx, in, x)
	return q, in, err
}

// query checks a request.
func (s *Server) query(ctx context.Context, in *searchRequest, x *snapshot) (*query, error) {
	n := x.own.Rows()
	q := &query{ctx: ctx, on: x, view: x.own, row: -1, k: min(defaultK, s.o.Limits.K), exact: in.Exact}
	if in.K != nil {
		q.k = *in.K
	}
	named := 0
	for _, there := range []bool{in.Text != nil, in.Image != nil, in.Vector != nil, in.Row != nil,
		in.TextFeatures != nil, in.ImageFeatures != nil} {
		if there {
			named++
		}
	}
	switch {
	case named != 1:
		return nil, bad("a search has one of %s (got %d of them)", queryKeys, named)
	case q.k < 1 || q.k > s.o.Limits.K:
		return nil, bad("k must be 1 to %d (got %d)", s.o.Limits.K, q.k)
	case in.Offset < 0 || in.Offset > s.o.Limits.K-q.k:
		return nil, bad("offset must be at least 0, and with k at most %d (got %d and %d)", s.o.Limits.K, in.Offset, q.k)
	}
	if in.Filter != nil {
		if err := choose(q, in.Filter); err != nil {
			return nil, err
		}
	}
	switch q.k = max(1, min(q.k+in.Offset, n)); {
	case in.Text != nil:
		return q, s.text(q, *in.Text)
	case in.Image != nil:
		return q, s.image(q, *in.Image)
	case in.Vector != nil:
		return q, vector(q, in.Vector)
	case in.TextFeatures != nil:
		return q, stored(q, gallery.Text, in.TextFeatures)
	case in.ImageFeatures != nil:
		return q, stored(q, gallery.Image, in.ImageFeatures)
	}
	switch q.row = *in.Row; {
	case q.row < 0 || q.row >= x.Gallery.Rows(x.Side):
		return nil, bad("row must be 0 to %d (got %d)", x.Gallery.Rows(x.Side)-1, q.row)
	case !x.Gallery.Has(x.Side, q.row):
		return nil, bad("row %d was deleted", q.row)
	case n == 1:
		return nil, bad("the gallery has no other row than this one")
	}
	q.k = min(q.k, n-1)
	return q, nil
}

// choose finds the rows of a filter.
func choose(q *query, text json.RawMessage) error {
	f, err := gallery.ParseFilter(text)
	if err != nil {
		return bad("%v", err)
	}
	q.filter = string(text)
	q.rows, err = q.on.Gallery.Select(q.on.Side, f)
	return err
}

// queryKeys names what a request searches by.
const queryKeys = "text, image, vector, row, text_features and image_features"

// searchKeys are the names of a request.
var searchKeys = []string{"text", "image", "vector", "row", "text_features", "image_features", "k", "exact", "filter", "offset",
	"min_score", "fields", "with_vector"}

// reads refuses queries that the gallery's model cannot encode.
func reads(q *query, side string) error {
	if q.on.Encoder == nil {
		return bad("the server has no model to encode queries: search by a row or a vector")
	}
	if err := q.on.Encoder.Reads(side); err != nil {
		return bad("%v", err)
	}
	return nil
}

func (s *Server) text(q *query, text string) error {
	if err := reads(q, gallery.Text); err != nil {
		return err
	}
	switch {
	case len(text) > s.o.Limits.Text:
		return bad("text has %d bytes, at most %d are searched for", len(text), s.o.Limits.Text)
	case !utf8.ValidString(text):
		return bad("text is not UTF-8")
	}
	var err error
	if q.tokens, err = q.on.Encoder.Tokens(text); err != nil {
		return bad("%v", err)
	}
	q.text, q.view = text, q.on.view(gallery.Text)
	return nil
}

func (s *Server) image(q *query, text string) error {
	if err := reads(q, gallery.Image); err != nil {
		return err
	}
	if i := strings.Index(text, ";base64,"); strings.HasPrefix(text, "data:image/") && i > 0 && i < 40 { // a data URL
		text = text[i+len(";base64,"):]
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return bad("image must be the base64 of a JPEG, PNG, WebP, GIF, BMP or TIFF file")
	}
	w, h, err := images.Size(b, s.o.Limits.Pixels)
	if err != nil {
		return bad("%v", err)
	}
	if w > largeImage/h {
		if !s.batcher.images.take(q.ctx, slotWait) {
			s.metrics.refuse("image")
			return &failure{http.StatusServiceUnavailable,
				"too many large images wait: ask again in a second, or shrink this one"}
		}
		q.large = true
	}
	defer func() {
		if q.large && q.image == nil {
			s.batcher.images.give()
		}
	}()
	if !s.decoders.take(q.ctx, slotWait) {
		s.metrics.refuse("decode")
		return &failure{http.StatusServiceUnavailable, "too many images are being decoded: ask again in a second"}
	}
	defer s.decoders.give()
	m, err := images.Decode(b, s.o.Limits.Pixels)
	if err != nil {
		return bad("%v", err)
	}
	q.image, q.view = m, q.on.view(gallery.Image)
	return nil
}

// vector checks features of the gallery's space.
func vector(q *query, x []float64) error {
	all, err := numbers("vector", x)
	if err != nil {
		return err
	}
	if q.vector, err = q.on.Gallery.Channels(all); err != nil {
		return bad("vector %v", err)
	}
	q.view = q.on.vectors()
	return nil
}

// stored checks features of a side that the model is to map.
func stored(q *query, side string, x []float64) (err error) {
	key := side + "_features"
	if q.on.Encoder == nil {
		return bad("the server has no model to map features: search by a row or a vector")
	}
	switch width := q.on.Encoder.Width(side); {
	case width == 0:
		return bad("the model reads no stored features: search by a text, an image, a row or a vector")
	case len(x) != width:
		return bad("%s has %d numbers, the features that the model reads have %d", key, len(x), width)
	}
	q.side, q.view = side, q.on.view(side)
	q.stored, err = numbers(key, x)
	return err
}

// numbers are those of a key, whose length must be one that can be computed with.
func numbers(key string, x []float64) ([]float32, error) {
	out, sum := make([]float32, len(x)), 0.0
	for i, v := range x {
		out[i] = float32(v)
		sum += v * v
	}
	if !(sum > 1e-30 && sum < 1e30) {
		return nil, bad("%s has length %.3g: scale it to about 1", key, math.Sqrt(sum))
	}
	return out, nil
}
