package serve

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/strictjson"
)

// putRequest is the body of PUT /v1/items.
type putRequest struct {
	Items []putItem `json:"items"`
}

var putKeys = []string{"items"}

// putItem is a row that takes the place of that with its id, or is new. Exactly one of text, image and vector is there.
type putItem struct {
	ID      string             `json:"id"`
	Text    *string            `json:"text"`
	Image   *string            `json:"image"`   // base64 of a file, or a data URL
	Vector  strictjson.Numbers `json:"vector"`  // (C), as the gallery stores rows
	Payload json.RawMessage    `json:"payload"` // any JSON
}

var itemKeys = []string{"id", "text", "image", "vector", "payload"}

// UnmarshalJSON implements json.Unmarshaler: keys that there are not are errors. Keys that are there twice are errors of
// the request.
func (p *putItem) UnmarshalJSON(b []byte) error {
	type plain putItem
	if err := known(b, itemKeys); err != nil {
		return err
	}
	return fill(b, (*plain)(p))
}

// putReply is the answer.
type putReply struct {
	Put      int    `json:"put"`
	Replaced int    `json:"replaced"` // of them, those that took the place of another row
	Rows     int    `json:"rows"`     // that can be found now
	Gallery  string `json:"gallery"`
}

// deleteRequest is the body of DELETE /v1/items. One of both is there.
type deleteRequest struct {
	IDs    []string        `json:"ids"`
	Filter json.RawMessage `json:"filter"`
}

var deleteKeys = []string{"ids", "filter"}

// deleteReply is the answer.
type deleteReply struct {
	Deleted int    `json:"deleted"`
	Rows    int    `json:"rows"`
	Gallery string `json:"gallery"`
}

// writer returns what changes the gallery.
func (x *snapshot) writer() (*gallery.Writer, error) {
	if x.Writer == nil {
		return nil, &failure{http.StatusForbidden,
			"this server changes nothing: start it with --writable to put and delete rows"}
	}
	return x.Writer, nil
}

// put answers PUT /v1/items. The rows are on the disk, and found, when it answers.
func (s *Server) put(w http.ResponseWriter, r *http.Request) error {
	x := s.current.acquire()
	defer s.current.release(x)
	writer, err := x.writer()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.o.Limits.Answer)
	defer cancel()
	in, done, err := decode[putRequest](ctx, s, w, r, putKeys)
	if err != nil {
		return err
	}
	defer done()
	if n := len(in.Items); n < 1 || n > s.o.Limits.Items {
		return bad("items must be a list of 1 to %d (got %d)", s.o.Limits.Items, n)
	}
	rows := make([]gallery.Put, len(in.Items))
	for from := 0; from < len(rows); from += s.o.Limits.Batch {
		if err := s.encodeItems(ctx, x, in.Items, rows, from, min(from+s.o.Limits.Batch, len(rows))); err != nil {
			return err
		}
	}
	replaced, err := writer.Put(rows)
	if err != nil {
		return changeFailed(err)
	}
	g := writer.Gallery()
	s.metrics.changed(len(rows), 0)
	s.mergeIfDue(x.Source)
	reply(w, http.StatusOK, putReply{len(rows), replaced, g.Alive(x.Side), g.Version()})
	return nil
}

// encodeItems fills in rows from to to-1.
func (s *Server) encodeItems(ctx context.Context, x *snapshot, items []putItem, rows []gallery.Put,
	from, to int) error {
	queries := make([]*query, to-from)
	for i := from; i < to; i++ {
		in, q := &items[i], &query{ctx: ctx, on: x, row: -1, encode: true}
		rows[i] = gallery.Put{ID: in.ID, Payload: in.Payload}
		named := 0
		for _, there := range []bool{in.Text != nil, in.Image != nil, in.Vector != nil} {
			if there {
				named++
			}
		}
		var err error
		switch {
		case named != 1:
			return bad("item %d has one of text, image and vector (got %d of them)", i, named)
		case in.Text != nil && x.Side != gallery.Text, in.Image != nil && x.Side != gallery.Image:
			return bad("item %d is of another side than the gallery, whose rows are of the side %s", i, x.Side)
		case in.Vector != nil:
			if err = vector(q, in.Vector); err == nil {
				rows[i].Features = q.vector
				continue
			}
		case in.Text != nil:
			rows[i].Caption = *in.Text
			err = s.text(q, *in.Text)
		default:
			err = s.image(q, *in.Image)
		}
		if err == nil {
			err = s.refused(s.batcher.put(q))
		}
		if f, ok := err.(*failure); ok && f.code == http.StatusBadRequest {
			return bad("item %d: %s", i, f.text)
		}
		if err != nil {
			return err
		}
		queries[i-from] = q
	}
	for i, q := range queries {
		if q == nil {
			continue
		}
		a := s.batcher.wait(q)
		if err := s.refused(a.err); err != nil {
			return err
		}
		r := &rows[from+i]
		if r.Features = a.vector; a.folded != nil {
			r.Features, r.Own = a.folded, a.vector
		}
	}
	return nil
}

// changeFailed is the answer to a change that was not made: what is wrong with an item, or that it cannot be written.
func changeFailed(err error) error {
	if _, ok := errors.AsType[*gallery.ItemError](err); ok {
		return bad("%v", err)
	}
	return err
}

// remove answers DELETE /v1/items.
func (s *Server) remove(w http.ResponseWriter, r *http.Request) error {
	x := s.current.acquire()
	defer s.current.release(x)
	writer, err := x.writer()
	if err != nil {
		return err
	}
	in, done, err := decode[deleteRequest](r.Context(), s, w, r, deleteKeys)
	if err != nil {
		return err
	}
	defer done()
	n := 0
	switch {
	case (in.IDs == nil) == (in.Filter == nil):
		return bad("a deletion has one of ids and filter")
	case in.IDs != nil && (len(in.IDs) < 1 || len(in.IDs) > s.o.Limits.Items):
		return bad("ids must be a list of 1 to %d (got %d)", s.o.Limits.Items, len(in.IDs))
	case in.IDs != nil:
		n, err = writer.Delete(in.IDs)
	default:
		f, bads := gallery.ParseFilter(in.Filter)
		if bads != nil {
			return bad("%v", bads)
		}
		n, err = writer.DeleteWhere(f)
	}
	if err != nil {
		return changeFailed(err)
	}
	g := writer.Gallery()
	s.metrics.changed(0, n)
	s.mergeIfDue(x.Source)
	reply(w, http.StatusOK, deleteReply{n, g.Alive(x.Side), g.Version()})
	return nil
}

// mergeRetry is how long a merge that failed is not tried again.
const mergeRetry = time.Minute

// mergeIfDue merges the changes in the background where there are many.
func (s *Server) mergeIfDue(src *Source) {
	if !src.Writer.Due() || s.stopping.Load() {
		return
	}
	s.merges.Go(func() {
		s.reloading.Lock()
		defer s.reloading.Unlock()
		if time.Now().Before(s.notBefore) || s.ended.Err() != nil || !src.Writer.Due() {
			return
		}
		start := time.Now()
		if err := s.merge(s.ended, src); err != nil && s.ended.Err() == nil {
			s.notBefore = time.Now().Add(mergeRetry)
			s.metrics.merge("failed")
			s.say("the changes could not be merged, and stay in the log: %v", err)
			return
		}
		s.metrics.merge("done")
		s.say("merged: gallery of %d rows in %v", src.Writer.Gallery().Alive(src.Side),
			time.Since(start).Round(time.Millisecond))
	})
}

// merge writes the gallery of a source anew and serves that.
func (s *Server) merge(ctx context.Context, src *Source) error {
	var x *snapshot
	served := false
	err := src.Writer.Merge(ctx, func(next *gallery.Gallery) error {
		following, err := src.Next(ctx, next)
		if err == nil {
			x, err = newSnapshot(following)
		}
		return err
	}, func(*gallery.Gallery) { served = s.current.change(x) })
	if x != nil && !served {
		err = errors.Join(err, x.Source.Close())
	}
	return err
}
