package serve

import (
	"bytes"
	"container/list"
	"errors"
	"image/jpeg"
	"net/http"
	"strconv"
	"sync"

	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/gallery"
)

// infoReply is the answer of GET /v1/info.
type infoReply struct {
	Gallery    string     `json:"gallery"`
	Side       string     `json:"side"`
	Rows       int        `json:"rows"`
	Dim        int        `json:"dim"`
	Score      string     `json:"score,omitempty"`
	Metric     string     `json:"metric"` // of texts and images, and of vectors
	Index      bool       `json:"index"`
	Recall     float64    `json:"recall"`
	RecallK    int        `json:"recall_k"`              // neighbours of a query that it was measured with; 0 without an index
	Codes      string     `json:"index_codes,omitempty"` // bytes or bits; left out without an index
	Step       int        `json:"step,omitempty"`
	Writable   bool       `json:"writable,omitempty"`
	Texts      bool       `json:"text_queries"`
	Images     bool       `json:"image_queries"`
	Thumbnails bool       `json:"thumbnails"`
	TextWidth  int        `json:"text_features,omitempty"`  // numbers of such a query; 0: there is none
	ImageWidth int        `json:"image_features,omitempty"` // likewise
	Limits     infoLimits `json:"limits"`
}

// infoLimits are those of a request.
type infoLimits struct {
	Body   int64 `json:"body_bytes"`
	Pixels int   `json:"pixels"`
	Text   int   `json:"text_bytes"`
	K      int   `json:"k"`
}

// info answers GET /v1/info.
func (s *Server) info(w http.ResponseWriter, _ *http.Request) error {
	x := s.current.acquire()
	defer s.current.release(x)
	recall, index := x.cross.Indexed()
	l := s.o.Limits
	width := func(side string) int {
		if x.Encoder == nil {
			return 0
		}
		return x.Encoder.Width(side)
	}
	can := func(side string) bool { return x.Encoder != nil && x.Encoder.Reads(side) == nil }
	reply(w, http.StatusOK, infoReply{x.Gallery.Version(), x.Side, x.own.Rows(), x.Gallery.Dim(), x.Gallery.Meta.Score, string(x.cross.Metric()), index,
		recall, x.cross.RecallK(), string(x.cross.Codes()), x.Gallery.Meta.Step, x.Writer != nil, can(gallery.Text), can(gallery.Image), x.Picture != nil,
		width(gallery.Text), width(gallery.Image), infoLimits{l.Body, l.Pixels, l.Text, l.K}})
	return nil
}

// rowOf returns the row that a path names: by its id, or where no row has that one by its number.
func rowOf(r *http.Request, x *snapshot) (int, error) {
	text := r.PathValue("id")
	row, err := x.Gallery.ByID(x.Side, text)
	if !errors.Is(err, gallery.ErrNoRow) {
		return row, err
	}
	row, err = strconv.Atoi(text)
	if err != nil || !x.Gallery.Has(x.Side, row) || strconv.Itoa(row) != text {
		return 0, &failure{http.StatusNotFound, "there is no such row: name one by its id, or by its number from 0 to " +
			strconv.Itoa(x.Gallery.Rows(x.Side)-1)}
	}
	return row, nil
}

// item answers GET /v1/items/ID.
func (s *Server) item(w http.ResponseWriter, r *http.Request) error {
	x := s.current.acquire()
	defer s.current.release(x)
	row, err := rowOf(r, x)
	if err != nil {
		return err
	}
	h, err := x.hit(row)
	if err != nil {
		return err
	}
	reply(w, http.StatusOK, struct {
		gallery.Item
		Thumbnail string `json:"thumbnail,omitempty"`
	}{h.Item, h.Thumbnail})
	return nil
}

// Sizes of thumbnails.
const (
	thumbnailSide  = 192      // pixels of the longer side, at most
	thumbnailBytes = 32 << 20 // of thumbnails that are kept
)

// thumbnail answers GET /v1/thumbnails/ID with a JPEG.
func (s *Server) thumbnail(w http.ResponseWriter, r *http.Request) error {
	x := s.current.acquire()
	defer s.current.release(x)
	row, err := rowOf(r, x)
	if err != nil {
		return err
	}
	none := &failure{http.StatusNotFound, "this row has no image"}
	if x.Picture == nil {
		return none
	}
	tag := `"` + x.Gallery.ID + "-" + strconv.Itoa(row) + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "private, no-cache") // the row may be another one after a reload
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	b := x.thumbs.get(row)
	if b == nil {
		if !s.decoders.take(r.Context(), s.o.Limits.Answer) {
			w.Header().Del("ETag")
			s.metrics.refuse("decode")
			return &failure{http.StatusServiceUnavailable, "too many images are being decoded: ask again in a second"}
		}
		b, err = shrink(x.Picture, row)
		s.decoders.give()
		if err != nil {
			w.Header().Del("ETag")
			s.say("thumbnail %d: %v", row, err) // names the file, which is not the client's affair
			return none
		}
		x.thumbs.put(row, b)
	}
	w.Header().Set("Content-Type", "image/jpeg")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	_, err = w.Write(b)
	return ignore(err)
}

// shrink makes the thumbnail of a row.
func shrink(picture func(row int) (*transform.Image, error), row int) ([]byte, error) {
	m, err := picture(row)
	if err != nil {
		return nil, err
	}
	if m, err = transform.Fit(m, thumbnailSide); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = jpeg.Encode(&b, m.NRGBA(), &jpeg.Options{Quality: 85})
	return b.Bytes(), err
}

// thumbnails keeps the thumbnails that were asked for last.
type thumbnails struct {
	most int // bytes

	mu    sync.Mutex
	bytes int
	of    map[int]*list.Element
	order list.List // of *kept, the last one asked for in front
}

type kept struct {
	row  int
	jpeg []byte
}

func (t *thumbnails) get(row int) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.of[row]
	if e == nil {
		return nil
	}
	t.order.MoveToFront(e)
	return e.Value.(*kept).jpeg
}

func (t *thumbnails) put(row int, b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[int]*list.Element{}
	}
	if t.of[row] != nil {
		return
	}
	t.of[row] = t.order.PushFront(&kept{row, b})
	for t.bytes += len(b); t.bytes > t.most; {
		last := t.order.Remove(t.order.Back()).(*kept)
		delete(t.of, last.row)
		t.bytes -= len(last.jpeg)
	}
}
