package embed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/tasks"
)

// Files encodes files of any length to a gallery in shards in the folder out (empty:
// RUN/embeddings-NAME, after the file). Memory holds the names of a shard and the features of a
// batch. A shard that is there and whole, of the same inputs, is kept: so the same call goes on
// with one that was interrupted, and what changed since is done again, with a note. Inputs are the
// same where names and bytes are; images are read for that where what the file system says of them does not prove it.
// progress is told how much of a shard is done and may be nil. Several processes share the encoding and rank 0
// writes; with Inputs.LeaveOut rank 0 does all of it.
func Files(ctx context.Context, t *run.Trained, in Inputs, out string,
	progress func(phase string, done, total int)) (done Result, err error) {
	if t.Group.Size() > 1 && in.LeaveOut { // which inputs are left out only their reader knows
		if err := t.Load(); err != nil {
			return done, err
		}
		g := t.Group
		t.Group = parallel.Single{}
		defer func() { t.Group = g }()
		err = parallel.Alone(g, func() error {
			done, err = writeFiles(ctx, t, in, out, progress)
			return err
		})
		return done, err
	}
	return writeFiles(ctx, t, in, out, progress)
}

func writeFiles(ctx context.Context, t *run.Trained, in Inputs, out string,
	progress func(phase string, done, total int)) (done Result, err error) {
	if err := in.setDefaults(t.Config); err != nil {
		return done, err
	}
	if in.Rows != "" {
		told := func(done, total int) {
			if progress != nil {
				progress("converting "+filepath.Base(in.Rows), done, total)
			}
		}
		if err := parallel.First(t.Group,
			func() error {
				return features.Convert(ctx, in.Rows, in.Tensor, t.Config.Data.CacheDir,
					told)
			}); err != nil {
			return done, fmt.Errorf("--rows: %w", err)
		}
	}
	from, err := openInputs(t.Config, in, t.TextColumns)
	if err != nil {
		return done, err
	}
	defer from.Close()
	m := gallery.Manifest{Version: 1, ShardRows: in.Shard}
	from.describe(&m)
	if out == "" {
		name := filepath.Base(m.From)
		out = filepath.Join(t.Folder(), "embeddings-"+strings.TrimSuffix(name, filepath.Ext(name)))
	}
	folder, err := openFolder(t, out, gallery.FeaturesFile)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, folder.Release()) }()
	if err := t.Load(); err != nil {
		return done, err
	}
	inner := from
	if x, ok := from.(*payloads); ok {
		inner = x.inputs
	}
	if rows, ok := inner.(*rowInputs); ok {
		if err := rows.fits(t.Model); err != nil {
			return done, err
		}
	}
	rows, err := newRowEncoder(t, in.Dims)
	if err != nil {
		return done, err
	}
	done.Path, done.Model, done.Step, done.Twin = out, t.Path(), t.Step(), t.Twin
	rows.describe(&done)
	m.Dim, m.Meta = done.Dim, metaOf(t, done)
	switch {
	case in.Texts != "":
		m.Reading = reading(t.Config)
	case in.Images != "":
		m.Decoder = images.Pixels
	}
	s := &sharding{rows: rows, in: in, dir: out, lost: folder.Lost, m: m, decoder: m.Decoder, written: map[string]identity.Stamp{}, say: t.Say, encoding: encodingOf(t, progress)}
	if err := parallel.ByFirst(t.Group, s.open); err != nil {
		return done, err
	}
	if err := s.run(ctx, from); err != nil {
		return done, err
	}
	if t.Group.Rank() > 0 {
		return done, nil
	}
	done.Shards, done.Kept, done.LeftOut = len(s.m.Shards), s.kept, s.m.LeftOut
	done.Account = from.Account()
	// those of shards that were kept too
	done.Account.Move(map[string]string{"images": images.FileUnit, "texts": "line", "rows": "row"}[m.Source],
		s.m.LeftOut, "it cannot be read")
	done.Images = s.m.Rows
	if m.Side == gallery.Text {
		done.Images, done.Texts = 0, s.m.Rows
	}
	if s.m.Rows == 0 {
		found := ""
		if !done.Account.Whole() {
			found = ": " + done.Account.String()
		}
		return done, fmt.Errorf("%s has nothing to embed%s: give images (%s), lines of text or rows", m.From, found,
			images.FormatsRead)
	}
	return done, nil
}

// metaOf says of what model rows are that rowEncoder.describe has described.
func metaOf(t *run.Trained, done Result) gallery.Meta {
	return gallery.Meta{Model: absolute(t.Path()), Step: t.Step(), Score: done.Score, EvalScore: t.Config.Eval.Score,
		Product: done.Product, Alike: done.Alike, Space: done.Space, LeadingOf: done.LeadingOf, Twin: t.Twin, Weights: t.Weights()}
}

// sharding is files on their way to a gallery.
type sharding struct {
	rows     rowEncoder
	in       Inputs
	dir      string
	lost     func() error // says that another process has taken over the folder
	say      func(format string, args ...any)
	encoding tasks.Encoding

	m       gallery.Manifest // of what is done
	was     gallery.Manifest // of what was there, of whose shards some are taken
	kept    int
	decoder string                    // of JPEG files, from now on; empty: there are none
	written map[string]identity.Stamp // of files that were written
}

// open looks at what the folder has. What another model or other files made is refused.
func (s *sharding) open() error {
	old, err := gallery.ReadManifest(s.dir)
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if old.Generation > 0 {
		return console.Argument("%s holds a gallery whose rows were put or deleted since, which embedding again would "+
			"undo: choose another folder with --out", s.dir)
	}
	for _, x := range []struct{ what, old, now string }{
		{"model", old.Model, s.m.Model}, {"score", old.Score, s.m.Score}, {"source", old.From, s.m.From}, {"side", old.Side, s.m.Side},
		{"--momentum-encoder", strconv.FormatBool(old.Twin), strconv.FormatBool(s.m.Twin)}, {"--shard", strconv.Itoa(old.ShardRows), strconv.Itoa(s.m.ShardRows)}, {"channels", strconv.Itoa(old.Dim), strconv.Itoa(s.m.Dim)},
	} {
		if x.old != x.now {
			return console.Argument("%s holds a gallery with another %s (%s, now %s): choose another folder with --out, or remove that one", s.dir, x.what, x.old, x.now)
		}
	}
	switch {
	case old.Reading == "":
		s.m.Reading = "" // that of shards that stay is not known
	case old.Reading != s.m.Reading:
		return console.Argument("%s holds a gallery whose texts were read by other settings (%s, now %s): choose another folder with --out, or remove that one", s.dir, old.Reading, s.m.Reading)
	}
	switch {
	case old.Weights == "":
		s.m.Weights = "" // those of shards that stay are not known
	case s.m.Weights != "" && s.m.Weights != old.Weights:
		return console.Argument("%s holds a gallery that %s made before it was trained anew: choose another folder with --out, or remove that one", s.dir, old.Model)
	}
	s.was = *old
	if len(old.Shards) > 0 { // which may all stay
		s.m.Decoder = old.Decoder
	}
	return nil
}

// decodes says that images are read beside those of shards that were there. What decoded these stays unknown where it
// is.
func (s *sharding) decodes() {
	was := s.m.Decoder
	if s.decoder == "" || was == "" || images.SamePixels(was) || slices.Contains(strings.Split(was, ", "), s.decoder) {
		return
	}
	s.say("note: %s was begun with another decoder of JPEG files (%s, now %s): pixels of such images differ by a few grey levels: remove the folder to make all of it anew", s.dir, was, s.decoder)
	s.m.Decoder = was + ", " + s.decoder
}

// run makes the shards that are missing.
func (s *sharding) run(ctx context.Context, from inputs) error {
	g := s.rows.t.Group
	for k := 0; ; k++ {
		p, err := from.next(s.in.Shard)
		if err != nil {
			return err
		}
		if p == nil {
			break
		}
		sum := fmt.Sprintf("%08x", p.sum)
		kept, err := s.keep(ctx, k, p, sum)
		if err != nil {
			return err
		}
		if kept {
			s.kept++
			continue
		}
		s.decodes()
		shard, err := s.make(ctx, k, p)
		if err != nil {
			return err
		}
		shard.InputsSum = sum
		if err := parallel.ByFirst(g, func() error { return noteImages(ctx, &shard, p.images) }); err != nil {
			return err
		}
		s.m.Shards = append(s.m.Shards, shard)
		if err := parallel.ByFirst(g, func() error { return s.write(false) }); err != nil {
			return err
		}
	}
	return parallel.ByFirst(g, s.finish)
}

// keep keeps a shard that is there and serves, as rank 0 finds.
func (s *sharding) keep(ctx context.Context, k int, p *part, sum string) (bool, error) {
	g := s.rows.t.Group
	if err := parallel.Agree(g, nil); err != nil {
		return false, err
	}
	kept := false
	if g.Rank() == 0 && k < len(s.was.Shards) {
		why := s.stale(ctx, &s.was.Shards[k], p, sum)
		if kept = why == ""; !kept {
			s.say("note: shard %d is made again: %s", k+1, why)
		}
	}
	kept, err := g.All(kept || g.Rank() > 0)
	if kept && err == nil {
		x := gallery.Shard{} // of which other ranks know nothing
		if g.Rank() == 0 {
			x = s.was.Shards[k]
		}
		s.m.Shards = append(s.m.Shards, x)
	}
	return kept, err
}

// finish says that all is done, and removes what is left over.
func (s *sharding) finish() error {
	last := len(s.m.Shards)
	if s.kept == 0 { // nothing is left of what was there
		s.m.Decoder = s.decoder
	}
	if err := s.write(true); err != nil {
		return err
	}
	s.note()
	for _, x := range s.was.Shards[min(last, len(s.was.Shards)):] { // of a list that got shorter
		for _, name := range []string{x.Features, x.Names} {
			if err := os.Remove(filepath.Join(s.dir, name)); err != nil && !isMissing(err) {
				return err
			}
		}
	}
	return nil
}

// write says in the folder what is done. Until all is, shards of before that may still serve
// follow.
func (s *sharding) write(complete bool) error {
	if err := s.lost(); err != nil {
		return err
	}
	m := s.m
	if m.Complete = complete; !complete && len(s.was.Shards) > len(m.Shards) {
		m.Shards = append(m.Shards[:len(m.Shards):len(m.Shards)], s.was.Shards[len(m.Shards):]...)
	}
	m.Rows, m.LeftOut = 0, 0
	for _, x := range m.Shards {
		m.Rows, m.LeftOut = m.Rows+x.Rows, m.LeftOut+x.Inputs-x.Rows
	}
	if complete {
		s.m = m
	}
	return m.Write(s.dir)
}

// stale says why a shard that is there cannot be kept for these inputs; empty: it can.
func (s *sharding) stale(ctx context.Context, x *gallery.Shard, p *part, sum string) string {
	switch {
	case x.Inputs != p.gallery.Len() || !sameInputs(ctx, x, p, sum):
		return fmt.Sprintf("its %s have changed since", s.m.Source)
	case x.Rows < x.Inputs && !s.in.LeaveOut:
		return fmt.Sprintf("it leaves out %d of its %s", x.Inputs-x.Rows, s.m.Source)
	case x.Rows < x.Inputs && s.was.MaxPixels > 0 && s.m.MaxPixels > s.was.MaxPixels:
		return fmt.Sprintf("it leaves out %d of its %s, and data.max_pixels has grown from %d to %d", x.Inputs-x.Rows,
			s.m.Source, s.was.MaxPixels, s.m.MaxPixels)
	}
	one := gallery.Manifest{Shards: []gallery.Shard{*x}}
	for _, f := range one.Checks(s.dir) {
		if err := f.Known(ctx); err != nil {
			return filepath.Base(f.Path) + " is missing or damaged"
		}
	}
	return ""
}

// sameInputs says whether a shard is of these inputs. Images whose stamps are others are read, and their stamps are
// then renewed.
func sameInputs(ctx context.Context, x *gallery.Shard, p *part, sum string) bool {
	if p.images == nil || x.InputsContents == "" {
		return x.InputsSum == sum
	}
	if x.InputsStamps != "" && x.InputsStamps == p.images.stamps {
		return true
	}
	was := x.InputsContents
	if err := noteImages(ctx, x, p.images); err != nil || x.InputsContents != was {
		return false
	}
	x.InputsSum = sum
	return true
}

// noteImages notes in a shard what its images are. They are read once more, which takes a hundredth of the time of
// decoding them; those that change meanwhile are not known again.
func noteImages(ctx context.Context, x *gallery.Shard, images *imageFiles) (err error) {
	if x.InputsStamps, x.InputsContents = "", ""; images == nil {
		return nil
	}
	if x.InputsContents, err = images.contents(ctx); err != nil {
		return err
	}
	switch now, _ := images.stamped(); {
	case images.stamps != now: // one changed while it was read
		x.InputsContents = ""
	case images.proven:
		x.InputsStamps = now
	}
	return nil
}

// note has the user's book know what was written, so that a first search need not read it.
func (s *sharding) note() {
	for _, f := range s.m.Checks(s.dir) {
		if then, ok := s.written[f.Path]; ok {
			f.Note(then)
		}
	}
	_ = identity.User().Save() // else it is read once
}

// make encodes inputs and writes shard k.
func (s *sharding) make(ctx context.Context, k int, p *part) (x gallery.Shard, err error) {
	n := p.gallery.Len()
	bad := make([]error, n)
	var keep func(i int) bool
	g := p.gallery
	if s.in.LeaveOut {
		g = lenient{p.gallery, bad}
		keep = func(i int) bool { return bad[i] == nil }
	}
	phase := fmt.Sprintf("encoding %s, shard %d", s.m.Source, k+1)
	rows, err := s.rows.spool(ctx, s.encoding, s.m.Side, g, phase, s.dir, keep)
	if err != nil {
		if !s.in.LeaveOut && ctx.Err() == nil {
			err = fmt.Errorf("%s: %w\n(--skip-bad leaves out what cannot be read)", s.m.From, err)
		}
		return x, err
	}
	defer rows.Close()
	if s.rows.t.Group.Rank() > 0 {
		return x, nil
	}
	var kept []int
	shown := 0
	for i := range n {
		if bad[i] == nil {
			kept = append(kept, i)
		} else if shown++; shown <= 5 {
			s.say("left out: %v", bad[i])
		}
	}
	if shown > 5 {
		s.say("left out: %d more of shard %d", shown-5, k+1)
	}
	base := fmt.Sprintf("%ss-%05d", s.m.Side, k)
	x, err = gallery.WriteShard(s.dir, base, rows.tensors(s.m.Dim), s.m.Meta, len(kept),
		func(row int) any { return p.line(kept[row], row) })
	x.Inputs = n
	for _, name := range []string{x.Features, x.Names} {
		path := filepath.Join(s.dir, name)
		if stamp, statErr := identity.StampOf(path); statErr == nil {
			s.written[path] = stamp
		}
	}
	return x, err
}
