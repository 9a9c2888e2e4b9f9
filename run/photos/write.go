package photos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/internal/names"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run/embed"
)

// shardRows is the most rows of a shard. Another number is of a gallery that embed wrote.
const shardRows = gallery.PhotosRows

// ownTensor is that of images as they are compared with each other, where the score changes them for texts.
const ownTensor = "image_features"

// shard is one of the new gallery with the lines of its rows.
type shard struct {
	gallery.Shard
	rows []row
}

// writer makes the new gallery. Files get names that were never used, and the manifest says which count, so that it is
// the old gallery or a new one at any time; what no manifest names is removed at the end.
type writer struct {
	*keeper
	p      *plan
	m      gallery.Manifest
	shards []shard
	next   int // number of a shard
	lost   func() error
	open   map[string]*features.Matrix // by file and tensor
}

func newWriter(k *keeper, p *plan, lost func() error) (w *writer, err error) {
	w = &writer{keeper: k, p: p, m: p.old, lost: lost, open: map[string]*features.Matrix{}}
	if len(p.encode) > 0 || p.old.Dim == 0 {
		if k.enc, err = embed.NewEncoder(k.u.model); err == nil {
			err = k.enc.SeesImages()
		}
		if err != nil {
			return nil, err
		}
		w.m.Meta, w.m.Dim = k.enc.Meta(), k.enc.Dim()
		switch was := p.old.Decoder; {
		case was == "" || images.SamePixels(was):
			w.m.Decoder = images.Pixels
		default:
			w.m.Decoder = was + ", " + images.Pixels
		}
	}
	w.m.Version, w.m.Side, w.m.Source, w.m.ShardRows = 1, gallery.Image, "images", shardRows
	w.m.From, w.m.Root, w.m.MaxPixels = k.root, k.root, k.u.model.Config.Data.MaxPixels
	files.DropTemporaries(k.o.Dir)
	w.next, err = lastShard(k.o.Dir)
	return w, err
}

// shardName is that of the files of a shard.
var shardName = regexp.MustCompile(`^images-(\d{5,9})\.(safetensors|jsonl)$`)

// lastShard returns a number above those of all files of shards.
func lastShard(dir string) (next int, err error) {
	list, err := os.ReadDir(dir)
	for _, e := range list {
		if of := shardName.FindStringSubmatch(e.Name()); of != nil {
			n, _ := strconv.Atoi(of[1])
			next = max(next, n+1)
		}
	}
	return next, err
}

// base is the name of new files.
func (w *writer) base() string {
	w.next++
	return fmt.Sprintf("images-%05d", w.next-1)
}

func (w *writer) run(ctx context.Context) error {
	if err := w.keep(); err != nil {
		return err
	}
	if err := w.copyRows(); err != nil {
		return err
	}
	if len(w.p.encode) > 0 {
		if err := w.commit(false); err != nil {
			return err
		}
		if err := w.encode(ctx); err != nil {
			return err
		}
	}
	if err := w.merge(); err != nil {
		return err
	}
	w.m.LeftOut = len(w.p.bad)
	if err := w.commit(true); err != nil {
		return err
	}
	w.sweep()
	_ = identity.User().Save() // else files are read another time
	return nil
}

// names lists the names of the rows.
func (w *writer) names() (list []string) {
	for _, s := range w.shards {
		for _, r := range s.rows {
			list = append(list, r.Name)
		}
	}
	return list
}

// keep takes over the rows that the folder has, with the files of their shards where these stay as they are.
func (w *writer) keep() error {
	for n, old := range w.p.rows {
		s, dead, changed := shard{Shard: w.p.old.Shards[n]}, false, false
		for _, r := range old {
			dead, changed = dead || !r.live, changed || r.changed
			if r.live {
				s.rows = append(s.rows, r.row)
			}
		}
		switch {
		case dead:
			b := w.begin()
			for _, r := range old {
				if r.live {
					if err := b.take(s.Shard, r.at, r.row); err != nil {
						return errors.Join(err, b.Close())
					}
				}
			}
			if err := b.end(); err != nil {
				return err
			}
			continue
		case changed:
			if err := s.WriteNames(w.o.Dir, w.base(), func(i int) any { return s.rows[i] }); err != nil {
				return err
			}
		}
		w.shards = append(w.shards, s)
	}
	return nil
}

// copyRows writes the rows of pictures whose bytes are known.
func (w *writer) copyRows() error {
	b := w.begin()
	for _, c := range w.p.copies {
		if err := b.take(w.p.old.Shards[c.of.shard], c.of.at, c.row); err != nil {
			return errors.Join(err, b.Close())
		}
	}
	return b.end()
}

// encode encodes what is new. What is encoded is on the disk after w.o.Flush, and when ctx ends.
func (w *writer) encode(ctx context.Context) error {
	list, start := w.p.encode, time.Now()
	rows, bad := make([]row, len(list)), make([]*unreadable, len(list))
	most := w.m.MaxPixels
	load := func(i int) (*transform.Image, error) {
		f := list[i]
		m, r, err := read(f, w.root, most, w.p.began)
		switch {
		case err == nil:
			rows[i] = r
		case !files.Exhausted(err):
			bad[i] = &unreadable{Name: f.name, Stamp: f.stamp.String(), MaxPixels: most, Why: words.Short(err).Error()}
			err = fmt.Errorf("%w: %w", embed.ErrLeftOut, err)
		}
		return m, err
	}
	b, done, flushed := w.begin(), 0, time.Now()
	flush := func() error {
		flushed = time.Now()
		err := b.end()
		if b = w.begin(); err == nil {
			err = w.commit(false)
		}
		return err
	}
	err := w.enc.Rows(ctx, len(list), load, w.o.Progress, func(k int, x, own []float32) error {
		for i := range k {
			if r := bad[done]; r != nil {
				w.p.bad = append(w.p.bad, *r)
				w.p.met.Move(images.FileUnit, 1, "it cannot be read", r.Name+": "+r.Why)
			} else {
				var o []float32
				if own != nil {
					o = own[i*w.m.Dim : (i+1)*w.m.Dim]
				}
				if err := b.add(x[i*w.m.Dim:(i+1)*w.m.Dim], o, rows[done]); err != nil {
					return err
				}
				w.u.Encoded++
			}
			done++
		}
		if time.Since(flushed) >= w.o.Flush {
			return flush()
		}
		return nil
	})
	w.u.Seconds = time.Since(start).Seconds()
	if err != nil && ctx.Err() == nil {
		return errors.Join(err, b.Close())
	}
	if _, gone := os.ReadDir(w.root); gone != nil { // what could not be read may be there again tomorrow
		return errors.Join(fmt.Errorf("the folder of pictures is gone: %w: the next call goes on", gone), b.Close())
	}
	return errors.Join(err, flush())
}

// read decodes a picture and returns its line.
func read(f *file, root string, maxPixels int, began time.Time) (*transform.Image, row, error) {
	path := names.Under(root, f.name)
	sum := f.sum
	if sum == (identity.Sum{}) {
		var err error
		if sum, err = identity.Of(context.Background(), path); err != nil {
			return nil, row{}, err
		}
	}
	m, err := images.DecodeFile(path, maxPixels)
	if err != nil {
		return nil, row{}, err
	}
	r := (&file{f.name, f.stamp, sum}).row(began)
	if now, err := identity.StampOf(path); err != nil || now != f.stamp {
		r.Stamp = "" // it changed meanwhile: the next call reads it
	}
	return m, r, nil
}

// commit says in the folder which shards count.
func (w *writer) commit(complete bool) error {
	if err := w.lost(); err != nil {
		return err
	}
	writeUnreadable(w.o.Dir, w.p.bad)
	w.m.Complete, w.m.Rows, w.m.Shards = complete, 0, nil
	for _, s := range w.shards {
		w.m.Rows += s.Rows
		w.m.Shards = append(w.m.Shards, s.Shard)
	}
	return w.m.Write(w.o.Dir)
}

// merge joins shards that are small beside the one before, so that there are few: their sizes at least halve.
func (w *writer) merge() error {
	var list []shard
	for _, s := range w.shards {
		list = append(list, s)
		for n := len(list); n > 1 && list[n-2].Rows < 2*list[n-1].Rows && list[n-2].Rows+list[n-1].Rows <= shardRows; n-- {
			joined := list[n-2]
			joined.Shard = gallery.Shard{Rows: list[n-2].Rows + list[n-1].Rows} // written below, once
			joined.rows = slices.Concat(list[n-2].rows, list[n-1].rows)
			list = append(list[:n-2], joined)
		}
	}
	if len(list) == len(w.shards) {
		return nil
	}
	parts := w.shards
	w.shards = nil
	for _, s := range list {
		if s.Features != "" { // as it was
			w.shards, parts = append(w.shards, s), parts[1:]
			continue
		}
		b := w.begin()
		for left := s.Rows; left > 0; parts = parts[1:] {
			left -= parts[0].Rows
			for i, r := range parts[0].rows {
				if err := b.take(parts[0].Shard, i, r); err != nil {
					return errors.Join(err, b.Close())
				}
			}
		}
		if err := b.end(); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes files of shards that do not count. Who reads them has them open.
func (w *writer) sweep() {
	used := map[string]bool{}
	for _, s := range w.shards {
		used[s.Features], used[s.Names] = true, true
	}
	list, _ := os.ReadDir(w.o.Dir)
	for _, e := range list {
		if shardName.MatchString(e.Name()) && !used[e.Name()] {
			_ = os.Remove(filepath.Join(w.o.Dir, e.Name())) // else the next call does
		}
	}
}

// matrix opens a tensor of a shard.
func (w *writer) matrix(s gallery.Shard, tensor string) (*features.Matrix, error) {
	key := s.Features + " " + tensor
	if m := w.open[key]; m != nil {
		return m, nil
	}
	m, err := features.OpenMatrix(filepath.Join(w.o.Dir, s.Features), tensor)
	if err == nil {
		w.open[key] = m
	}
	return m, err
}

func (w *writer) close() (err error) {
	for _, m := range w.open {
		err = errors.Join(err, m.Close())
	}
	return err
}

// building is a shard on its way to the disk.
type building struct {
	w      *writer
	x, own *safetensors.Spool // nil before the first row; own: where there are two forms
	rows   []row
}

func (w *writer) begin() *building { return &building{w: w} }

// take adds a row of a shard that is there.
func (b *building) take(s gallery.Shard, i int, r row) error {
	m, err := b.w.matrix(s, gallery.Image)
	if err != nil {
		return err
	}
	x := make([]float32, m.Width())
	if err := m.ReadRows(i, x); err != nil {
		return err
	}
	var own []float32
	if m, err := b.w.matrix(s, ownTensor); err == nil {
		own = make([]float32, m.Width())
		if err := m.ReadRows(i, own); err != nil {
			return err
		}
	}
	return b.add(x, own, r)
}

// add adds a row.
func (b *building) add(x, own []float32, r row) (err error) {
	if slices.ContainsFunc(x, func(v float32) bool { return v-v != 0 }) {
		return fmt.Errorf("%s has features that are not finite: the model has diverged, name another one", r.Name)
	}
	if b.x == nil {
		if b.x, err = safetensors.NewSpool(b.w.o.Dir); err != nil {
			return err
		}
		if own != nil {
			if b.own, err = safetensors.NewSpool(b.w.o.Dir); err != nil {
				return err
			}
		}
	}
	r.Row = len(b.rows)
	b.rows = append(b.rows, r)
	if err := b.x.Append(x); err != nil || own == nil {
		return err
	}
	return b.own.Append(own)
}

// end writes the shard, unless it is empty, and drops what was collected.
func (b *building) end() (err error) {
	defer func() { err = errors.Join(err, b.Close()) }()
	w, n := b.w, len(b.rows)
	if n == 0 {
		return nil
	}
	tensors := []safetensors.Tensor{{Name: gallery.Image, Shape: []int{n, w.m.Dim}, Data: b.x}}
	if b.own != nil {
		tensors = append(tensors, safetensors.Tensor{Name: ownTensor, Shape: []int{n, w.m.Dim}, Data: b.own})
	}
	s, err := gallery.WriteShard(w.o.Dir, w.base(), tensors, w.m.Meta, n, func(i int) any { return b.rows[i] })
	if err == nil {
		w.shards = append(w.shards, shard{s, b.rows})
	}
	return err
}

// Close drops what was collected.
func (b *building) Close() (err error) {
	for _, s := range []*safetensors.Spool{b.x, b.own} {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	b.x, b.own, b.rows = nil, nil, nil
	return err
}
