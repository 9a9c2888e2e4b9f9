package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/tasks/zeroshot"
)

// An evaluation reads its pictures as it encodes them. Where one cannot be read, all rows are looked through once,
// those that cannot be read are left out for good, as far as data.max_bad_share allows, and the evaluation begins
// again: data without fault costs nothing, and of several processes, each of which looks through its share, all leave
// out the same rows.

// tolerant evaluates although some rows cannot be read.
type tolerant struct {
	sets     []screened
	limit    float64 // data.max_bad_share
	group    parallel.Group
	say      func(format string, args ...any) // of rank 0; nil: nobody
	progress func(phase string, done, of int) // nil: nobody
}

// screened is a split that one of several models evaluates, of which all have the same rows.
type screened struct {
	set   *Split
	cfg   config.Config
	model Model
}

// run does the work, and again where it failed because of rows that can be left out. Errors of do are agreed on by all
// processes.
func (t *tolerant) run(ctx context.Context, do func() error) error {
	if t.group == nil {
		t.group = parallel.Single{}
	}
	for {
		err := do()
		if err == nil {
			return nil
		}
		bad, failed := t.any(errors.As(err, new(*data.RowError)))
		if failed != nil {
			return errors.Join(err, failed)
		}
		if !bad || ctx.Err() != nil {
			return err
		}
		found, failed := t.leaveOut(ctx)
		if failed != nil {
			return failed
		}
		if !found { // it is of other files
			return err
		}
	}
}

// any says whether it is so on any process.
func (t *tolerant) any(own bool) (bool, error) {
	if t.group.Size() == 1 {
		return own, nil
	}
	none, err := t.group.All(!own)
	return !none, err
}

// leaveOut looks through the rows of all files, and leaves out what cannot be read. found says whether there was any.
func (t *tolerant) leaveOut(ctx context.Context) (found bool, err error) {
	first := t.sets[0]
	cfg := first.cfg
	look := func(what string, n int, read func(i int, worker *batch.Batch) error, columns []batch.Column) (data.BadRows,
		error) {
		bad, err := t.screen(ctx, n, columns, read)
		if err != nil || len(bad) == 0 {
			return bad, err
		}
		found = true
		if err := bad.CheckShare(n, t.limit); err != nil {
			return nil, fmt.Errorf("evaluation: %w", err)
		}
		if t.say != nil && t.group.Rank() == 0 {
			t.say("evaluation: %d of %s cannot be read and are left out (data.max_bad_share = %g), such as %s",
				len(bad), words.Count(n, what), t.limit, bad[firstOf(bad)])
		}
		return bad, nil
	}
	if first.set.Galleries != nil && !cfg.Has(section.Sentences) {
		images, texts := data.BadRows{}, data.BadRows{}
		for _, s := range t.sets {
			if err := s.look(look, images, texts); err != nil {
				return found, err
			}
		}
		if len(images)+len(texts) > 0 {
			for _, s := range t.sets {
				if err := s.set.without(s.cfg, images, texts); err != nil {
					return found, err
				}
			}
		}
	}
	if x, task := first.set.samples(); x != nil {
		bad, err := look("sample", x.Len(), func(i int, _ *batch.Batch) error {
			for p := range x.Pictures() {
				if _, err := x.Picture(i, p); err != nil {
					return err
				}
			}
			return nil
		}, nil)
		if err == nil && len(bad) > 0 {
			first.set.leftOut += len(bad)
			if x, err = data.WithoutExamples(x, bad); err == nil {
				first.set.kept[task] = x
			}
		}
		if err != nil {
			return found, err
		}
	}
	if z, _ := first.set.kept[zeroshot.Name].(*data.Eval); z != nil {
		bad, err := look("image", z.NumImages(), func(i int, _ *batch.Batch) error { _, err := z.Image(i); return err },
			nil)
		if err == nil && len(bad) > 0 {
			var g data.Galleries
			if g, err = z.Without(bad, nil); err == nil {
				first.set.leftOut += len(bad)
				first.set.kept[zeroshot.Name] = g
			}
		}
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// look finds the rows of the galleries that cannot be read.
func (s screened) look(look func(what string, n int, read func(i int, b *batch.Batch) error,
	columns []batch.Column) (data.BadRows, error), images, texts data.BadRows) error {
	side := func(what string, g data.Gallery, columns []batch.Column, to data.BadRows) error {
		if batch.Check(columns, g.Columns()) != nil {
			return nil // the model reads others than these
		}
		bad, err := look(what, g.Len(), func(i int, b *batch.Batch) error { return g.Fill(i, b.Row(0)) }, columns)
		for row, why := range bad {
			to[row] = why
		}
		return err
	}
	if err := side("image", s.set.Images(), s.model.Image().Columns(), images); err != nil || s.set.Eval != nil {
		return err // captions are in memory
	}
	g, err := s.set.Texts(nil)
	if err != nil {
		return err
	}
	return side("text", g, s.model.Text().Columns(), texts)
}

// without leaves rows out of the galleries for good.
func (s *Split) without(cfg config.Config, images, texts data.BadRows) error {
	r, ok := s.Galleries.(data.Reducible)
	if !ok {
		return nil
	}
	g, err := r.Without(images, texts)
	if err != nil {
		return err
	}
	s.leftOut += s.Len() - g.Images().Len()
	s.Galleries = g
	s.Eval, _ = g.(*data.Eval)
	return source.CheckFolds(cfg.Source(), g.Images().Len())
}

// firstOf is the lowest row.
func firstOf(bad data.BadRows) int {
	first := -1
	for row := range bad {
		if first < 0 || row < first {
			first = row
		}
	}
	return first
}

// screen reads n rows, of which each process has every so manieth, and returns those of all that cannot be read.
func (t *tolerant) screen(ctx context.Context, n int, columns []batch.Column,
	read func(i int, b *batch.Batch) error) (data.BadRows, error) {
	ranks, rank := t.group.Size(), t.group.Rank()
	var mu sync.Mutex
	var wg sync.WaitGroup
	own := data.BadRows{}
	var failed error
	next, done := rank, 0
	take := func() (i int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		i = next
		next += ranks
		if failed == nil {
			failed = ctx.Err()
		}
		return i, i < n && failed == nil
	}
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			b := batch.New(1, columns...)
			for i, ok := take(); ok; i, ok = take() {
				err := read(i, b)
				mu.Lock()
				switch {
				case files.Exhausted(err):
					failed = err
				case err != nil:
					own[i] = err.Error()
				}
				if done += ranks; t.progress != nil {
					t.progress("looking for what cannot be read", min(done, n), n)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := parallel.Agree(t.group, failed); err != nil || ranks == 1 {
		return own, err
	}
	text, _ := json.Marshal(own) // which holds nothing that JSON lacks
	all, err := t.group.GatherBytes(text)
	if err != nil {
		return nil, err
	}
	for rank, text := range all {
		if err := json.Unmarshal(text, &own); err != nil {
			return nil, fmt.Errorf("what rank %d says of its rows: %w", rank, err)
		}
	}
	return own, nil
}
