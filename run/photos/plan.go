package photos

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/internal/names"
)

// file is a picture that was found.
type file struct {
	name  string
	stamp identity.Stamp
	sum   identity.Sum // of its bytes; zero: not read yet
}

// kept is a row that is there already.
type kept struct {
	row
	shard, at int
	live      bool // the folder has it, perhaps under another name
	changed   bool // its line is another one now
}

// plan is what an update has to do.
type plan struct {
	root   string
	old    gallery.Manifest // of what is there, whose shards have the rows of rows
	rows   [][]*kept
	copies []copied // of rows, under further names
	encode []*file
	bad    []unreadable // that are known to be
	met    *account.Account
	began  time.Time // before anything was looked at

	images, moved, touched, removed int
}

// copied is a picture that has the bytes of a row.
type copied struct {
	of *kept
	row
}

// nothing says whether the gallery is as the folder.
func (p *plan) nothing() bool {
	for _, shard := range p.rows {
		for _, r := range shard {
			if !r.live || r.changed {
				return false
			}
		}
	}
	return p.old.Complete && len(p.copies)+len(p.encode) == 0
}

// names lists the names of the rows, where there is nothing to do.
func (p *plan) names() (list []string) {
	for _, shard := range p.rows {
		for _, r := range shard {
			list = append(list, r.Name)
		}
	}
	return list
}

// now is the clock, which tests put forward: what it says proves whether files may have changed since.
var now = time.Now

// look compares the folder root with the gallery that old is the manifest of.
func look(ctx context.Context, root, dir string, old gallery.Manifest, maxPixels int,
	progress func(phase string, done, total int)) (*plan, error) {
	p := &plan{root: root, old: old, met: account.New(), began: now()}
	byName := map[string]*kept{}
	sizes := map[int64]bool{}
	for k, s := range old.Shards {
		list, err := readRows(dir, s)
		if err != nil {
			return nil, err
		}
		shard := make([]*kept, len(list))
		for i, r := range list {
			shard[i] = &kept{row: r, shard: k, at: i}
			byName[r.Name] = shard[i]
			sizes[r.Bytes] = true
		}
		p.rows = append(p.rows, shard)
	}
	bad := readUnreadable(dir)
	var unread []string
	var pending []*file
	for name, err := range images.BelowReadable(root, p.met, func(at string) { unread = append(unread, at) }) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if !utf8.ValidString(name) { // a gallery could not say which file it is
			p.met.Move(images.FileUnit, 1, "the name is not UTF-8", name)
			continue
		}
		st, err := identity.StampOf(names.Under(root, name))
		if err != nil {
			p.met.Move(images.FileUnit, 1, "it cannot be read", name)
			continue
		}
		if x := bad[name]; x.Stamp == st.String() && x.MaxPixels >= maxPixels {
			p.bad = append(p.bad, x)
			p.met.Move(images.FileUnit, 1, "it cannot be read", name)
			continue
		}
		p.images++
		if r := byName[name]; r != nil && r.Stamp != "" && r.Stamp == st.String() {
			r.live = true
			continue
		}
		pending = append(pending, &file{name: name, stamp: st})
	}
	for name, r := range byName {
		for _, at := range unread { // nobody can say that it is gone
			if strings.HasPrefix(name, at+"/") && !r.live {
				r.live = true
				p.images++
			}
		}
	}
	if err := p.sums(ctx, pending, sizes, progress); err != nil {
		return nil, err
	}
	p.match(pending, byName)
	return p, nil
}

// sums reads the files that may be pictures which are known.
func (p *plan) sums(ctx context.Context, pending []*file, sizes map[int64]bool,
	progress func(phase string, done, total int)) error {
	var list []*file
	for _, f := range pending {
		if sizes[f.stamp.Size] {
			list = append(list, f)
		}
	}
	var done atomic.Int64
	return each(ctx, len(list), func(i int) error {
		sum, err := identity.Of(ctx, names.Under(p.root, list[i].name))
		if err == nil {
			list[i].sum = sum
		} // else encoding it says why
		if n := done.Add(1); progress != nil {
			progress("reading pictures", int(n), len(list))
		}
		return ctx.Err()
	})
}

// each calls f for 0 to n-1 on several goroutines, until one fails.
func each(ctx context.Context, n int, f func(i int) error) error {
	var next atomic.Int64
	errs := make([]error, min(4, n))
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && errs[w] == nil && ctx.Err() == nil; i = next.Add(1) - 1 {
				errs[w] = f(int(i))
			}
		})
	}
	wg.Wait()
	return cmp.Or(append(errs, ctx.Err())...)
}

// match finds the rows of files that are not known by their stamps.
func (p *plan) match(pending []*file, byName map[string]*kept) {
	bySum := map[string][]*kept{}
	for _, shard := range p.rows {
		for _, r := range shard {
			bySum[r.Sum] = append(bySum[r.Sum], r)
		}
	}
	var rest []*file
	for _, f := range pending { // first those that stayed where they are
		if r := byName[f.name]; r != nil && !r.live && f.sum != (identity.Sum{}) && r.Sum == f.sum.String() {
			r.takes(f, p.began)
			p.touched++
			continue
		}
		rest = append(rest, f)
	}
	for _, f := range rest {
		same := bySum[f.sum.String()]
		if f.sum == (identity.Sum{}) {
			same = nil
		}
		gone := slices.IndexFunc(same, func(r *kept) bool { return !r.live })
		switch {
		case gone >= 0:
			same[gone].takes(f, p.began)
			p.moved++
		case len(same) > 0:
			c := copied{of: same[0], row: f.row(p.began)}
			p.copies = append(p.copies, c)
			p.moved++
		default:
			p.encode = append(p.encode, f)
		}
	}
	for _, shard := range p.rows {
		for _, r := range shard {
			if !r.live {
				p.removed++
			}
		}
	}
}

// takes makes the row that of a file with the same bytes.
func (k *kept) takes(f *file, began time.Time) {
	r := f.row(began)
	r.Row = k.Row
	k.live, k.changed = true, k.changed || r != k.row
	k.row = r
}

// row is what is noted of a file whose sum is known. read is when it was read, after it had its stamp.
func (f *file) row(read time.Time) row {
	r := row{Name: f.name, Bytes: f.stamp.Size, Sum: f.sum.String()}
	if f.stamp.Proves(read) {
		r.Stamp = f.stamp.String()
	}
	return r
}

// whole says why a shard that is there cannot be used; nil: it can.
func whole(ctx context.Context, dir string, s gallery.Shard) error {
	one := gallery.Manifest{Shards: []gallery.Shard{s}}
	for _, c := range one.Checks(dir) {
		if err := c.Known(ctx); err != nil {
			return err
		}
	}
	return nil
}
