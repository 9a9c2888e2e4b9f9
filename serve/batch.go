package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/gallery"
)

// query is a request in the queue. One of text, image, features, vector and row is what it asks by.
type query struct {
	ctx    context.Context
	on     *snapshot
	view   *gallery.View // the rows as they are compared with it
	text   string
	image  *transform.Image
	large  bool      // the image has a place among the large ones until the query is answered
	stored []float32 // features of a side before the model, which reads them
	side   string    // of these
	vector []float32
	folded []float32 // of an image: as it is compared with texts
	row    int       // -1: none
	k      int
	exact  bool
	encode bool    // for its vector alone: nothing is searched for
	tokens int     // of text
	filter string  // in the spelling of the request; empty: none
	rows   []int32 // that the filter chooses

	answer chan answer // has room for one
}

// answer is what a query finds.
type answer struct {
	rows   []int32
	scores []float32
	vector []float32 // of a query for it alone
	folded []float32 // of an image, as it is compared with texts
	batch  int       // queries that were computed together
	err    error
}

// errBusy says that the queue is full.
var errBusy = errors.New("too many requests wait: ask again in a second")

// batcher answers queries, those that wait together.
type batcher struct {
	queue   chan *query
	stop    chan struct{} // closed at the end
	most    int           // of a batch
	timeout time.Duration
	images  slots // large images that are decoded and wait or are encoded, which bounds memory
	current *current
	metrics *metrics
	say     func(format string, args ...any)
}

// put puts a query into the queue.
func (b *batcher) put(q *query) error {
	q.answer = make(chan answer, 1)
	b.current.again(q.on) // for the batcher, who may go on when the caller has left
	select {
	case b.queue <- q:
		return nil
	default:
		b.free(q)
		return errBusy
	}
}

// wait waits for the answer to a query that is in the queue.
func (b *batcher) wait(q *query) answer {
	select {
	case a := <-q.answer:
		return a
	case <-q.ctx.Done():
		return answer{err: q.ctx.Err()}
	case <-b.stop:
		return answer{err: errStopping}
	}
}

// free gives back what a query holds that has left the queue.
func (b *batcher) free(q *query) {
	if q.image = nil; q.large {
		b.images.give()
	}
	b.current.release(q.on)
}

// errStopping says that the server ends.
var errStopping = errors.New("the server is stopping: ask again when it is back")

// run answers until it is stopped.
func (b *batcher) run() {
	for {
		select {
		case <-b.stop:
			return
		case q := <-b.queue:
			b.compute(append([]*query{q}, b.waiting(b.most-1)...))
		}
	}
}

// waiting takes what waits, at most so many.
func (b *batcher) waiting(most int) (batch []*query) {
	for len(batch) < most {
		select {
		case q := <-b.queue:
			batch = append(batch, q)
		default:
			return batch
		}
	}
	return batch
}

// compute answers a batch, whose queries may be of several galleries during a reload.
func (b *batcher) compute(batch []*query) {
	of := map[*snapshot][]*query{}
	var order []*snapshot
	for _, q := range batch {
		if err := q.ctx.Err(); err != nil { // nobody waits any more
			q.answer <- answer{err: err}
			b.free(q)
			continue
		}
		if of[q.on] == nil {
			order = append(order, q.on)
		}
		of[q.on] = append(of[q.on], q)
	}
	for _, on := range order {
		b.metrics.batch(len(of[on]))
		b.guard(of[on])
	}
}

// guard answers the queries of a gallery whatever happens.
func (b *batcher) guard(queries []*query) {
	defer func() {
		p := recover()
		if p != nil {
			b.say("a search failed: %v", p)
		}
		for _, q := range queries {
			select {
			case q.answer <- answer{err: errors.New("the search failed")}: // has none yet
			default:
			}
			b.free(q)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), b.timeout)
	defer cancel()
	start := time.Now()
	ready := b.encode(ctx, queries)
	encoded := time.Now()
	b.metrics.encode(encoded.Sub(start))
	b.search(ctx, ready, len(queries))
	b.metrics.search(time.Since(encoded))
}

// encode sets the vectors of all queries and returns those that have one; the others are answered.
func (b *batcher) encode(ctx context.Context, queries []*query) (ready []*query) {
	var texts, images []*query
	stored := map[string][]*query{} // by their side
	for _, q := range queries {
		switch {
		case q.text != "":
			texts = append(texts, q)
		case q.image != nil:
			images = append(images, q)
		case q.stored != nil:
			stored[q.side] = append(stored[q.side], q)
		case q.row >= 0:
			x, err := q.on.Gallery.Row(q.on.Side, q.row)
			if err != nil {
				q.answer <- answer{err: err}
				continue
			}
			q.vector = x
			ready = append(ready, q)
		default:
			ready = append(ready, q)
		}
	}
	set := func(of []*query, x []float32, err error) {
		for i, q := range of {
			if err != nil {
				q.answer <- answer{err: err}
				continue
			}
			n := len(x) / len(of)
			q.vector = x[i*n : (i+1)*n]
			ready = append(ready, q)
		}
	}
	if len(texts) > 0 {
		words := make([]string, len(texts))
		for i, q := range texts {
			words[i] = q.text
		}
		x, err := texts[0].on.Encoder.Texts(ctx, words)
		set(texts, x, err)
	}
	if len(images) > 0 {
		pictures := make([]*transform.Image, len(images))
		for i, q := range images {
			pictures[i] = q.image
		}
		own, folded, err := images[0].on.Encoder.Images(ctx, pictures)
		for i, q := range images {
			if n := len(folded) / len(images); err == nil {
				q.folded = folded[i*n : (i+1)*n]
			}
		}
		if images[0].on.Side == gallery.Text {
			own = folded
		}
		set(images, own, err)
	}
	for _, side := range []string{gallery.Image, gallery.Text} {
		of := stored[side]
		if len(of) == 0 {
			continue
		}
		var rows []float32
		for _, q := range of {
			rows = append(rows, q.stored...)
		}
		own, folded, err := of[0].on.Encoder.Features(ctx, side, rows)
		if of[0].on.Side != side {
			own = folded
		}
		set(of, own, err)
	}
	return ready
}

// search answers queries that have vectors, those of one kind together.
func (b *batcher) search(ctx context.Context, queries []*query, batch int) {
	type kind struct {
		view   *gallery.View
		k      int
		exact  bool
		filter string
	}
	of := map[kind][]*query{}
	var order []kind
	for _, q := range queries {
		if q.encode {
			q.answer <- vectorOf(q)
			continue
		}
		key := kind{q.view, q.k, q.exact, q.filter}
		if of[key] == nil {
			order = append(order, key)
		}
		of[key] = append(of[key], q)
	}
	for _, key := range order {
		group := of[key]
		if err := b.group(ctx, key.view, group, batch); err == nil {
			continue
		} else if len(group) == 1 {
			group[0].answer <- answer{err: err}
			continue
		}
		for _, q := range group { // one of them is to blame
			if err := b.group(ctx, key.view, []*query{q}, batch); err != nil {
				q.answer <- answer{err: err}
			}
		}
	}
}

// vectorOf answers a query for its vector alone.
func vectorOf(q *query) answer {
	for _, v := range q.vector {
		if v-v != 0 {
			return answer{err: errors.New("the features of a query are not finite")}
		}
	}
	return answer{vector: slices.Clone(q.vector), folded: slices.Clone(q.folded)}
}

// latest returns the rows that a filter chose last for one of its queries: rows may be put between them. Those that were
// deleted since are passed over by the search.
func latest(group []*query) []int32 {
	rows := group[0].rows
	for _, q := range group[1:] {
		if n, m := len(q.rows), len(rows); n > 0 && (m == 0 || q.rows[n-1] > rows[m-1]) {
			rows = q.rows
		}
	}
	return rows
}

// group searches for queries together and answers them, or none.
func (b *batcher) group(ctx context.Context, v *gallery.View, group []*query, batch int) error {
	var x []float32
	skip, skips := make([]int32, len(group)), false
	for i, q := range group {
		x = append(x, q.vector...)
		skip[i], skips = int32(q.row), skips || q.row >= 0
	}
	o := gallery.Options{K: group[0].k, Exact: group[0].exact, Rows: latest(group)}
	if skips {
		o.Skip = skip
	}
	hits, err := v.Search(ctx, group[0].on.Engine, x, o)
	if err != nil {
		return fmt.Errorf("search: %w", err)
	}
	for i, q := range group {
		rows, scores := hits.Of(i)
		q.answer <- answer{rows: rows, scores: scores, batch: batch}
	}
	return nil
}
