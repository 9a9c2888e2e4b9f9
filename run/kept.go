package run

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/model"
)

// keptTower is a frozen tower whose class tokens training reads from a file (data.cache_features). It is a pool, whose
// rows wait for the file.
type keptTower struct {
	side    string
	encoder *model.Encoder
	inputs  data.TowerInputs
	width   int
	cache   *data.TowerCache // nil: rows of zeros, of a dry run
	ready   chan struct{}    // closed when cache is final
}

func (t *keptTower) Rows() int  { return t.inputs.Rows }
func (t *keptTower) Width() int { return t.width }

// Row implements batch.Pool.
func (t *keptTower) Row(i int, dst []float32) error {
	<-t.ready
	if t.cache == nil {
		clear(dst)
		return nil
	}
	return t.cache.Row(i, dst)
}

// releaseTowers ends the wait for rows of kept towers.
func (r *Run) releaseTowers() error {
	for _, t := range r.kept {
		select {
		case <-t.ready:
		default:
			close(t.ready)
		}
	}
	return nil
}

// keepTowers has the stream give the columns of the frozen towers that are not run in training.
func (r *Run) keepTowers(stream data.Stream) error {
	if !r.cfg.Data.CacheFeatures {
		return nil
	}
	s, ok := stream.(data.Towered)
	if !ok {
		return cannotKeep(r.cfg)
	}
	var pools [2]batch.Pool
	for i, side := range []string{"image", "text"} {
		width, kept := r.pairs.Kept(side)
		if !kept {
			continue
		}
		t := &keptTower{side: side, width: width, encoder: r.pairs.Text(), ready: make(chan struct{})}
		if side == "text" {
			t.inputs = s.TextInputs()
		} else if t.inputs, ok = s.ImageInputs(); ok {
			t.encoder = r.pairs.Image()
		} else {
			return cannotKeep(r.cfg)
		}
		r.kept, pools[i] = append(r.kept, t), t
	}
	s.UseTowers(pools[0], pools[1])
	return nil
}

// cannotKeep says that data has no list of images to keep something of.
func cannotKeep(cfg config.Config) error {
	return config.Errors{{Path: "data.cache_features", Value: true, Msg: fmt.Sprintf("must be false with data.kind %q",
		cfg.Data.Kind), Hint: "its images are not files that can be told apart"}}
}

// fillTowers opens the files of the kept towers, whose parameters are final now, and computes what they lack. A dry
// run has none.
func (r *Run) fillTowers(ctx context.Context, dry bool) error {
	defer r.releaseTowers()
	for _, t := range r.kept {
		if dry {
			break
		}
		if err := r.fillTower(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func (r *Run) fillTower(ctx context.Context, t *keptTower) (err error) {
	h := sha256.New()
	h.Write(r.pairs.TowerHash(t.side))
	if t.side == "text" {
		tokens, err := r.tok.JSON()
		if err != nil {
			return err
		}
		h.Write(tokens)
	}
	d := r.cfg.Data
	c, err := data.OpenTowerCache(data.TowerKey{Side: t.side, Tower: h.Sum(nil), Folder: d.CacheDir, Width: t.width,
		Max: int64(min(d.CacheMaxGB, 1e9) * 1e9)}, t.inputs)
	if err != nil {
		return err
	}
	r.closers = append(r.closers, c.Close)
	missing, err := c.Missing()
	if err != nil {
		return err
	}
	r.report.Say("frozen %s tower: features of %s, %.1f MB in %s, %s to compute", t.side, words.Count(c.Rows(), t.side),
		float64(c.Bytes())/1e6, c.Path(), words.Thousands(len(missing)))
	t.cache = c
	if len(missing) == 0 {
		return nil
	}
	defer r.report.PhasesDone()
	defer t.encoder.Forget()
	// As many rows at a time as a step has, whose kernels then round alike.
	bad := badRows{rows: map[int]error{}}
	l, err := data.NewLoader(t.inputs.Stream(missing, bad.add), data.LoaderConfig{BatchSize: r.cfg.Train.BatchSize,
		Columns: t.encoder.Columns(), Workers: d.Workers, Prefetch: 2})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for n := uint64(len(missing)); l.Position() < n; {
		r.report.Phase("features of the frozen "+t.side+" tower", int(l.Position()), len(missing))
		b, err := l.Next(ctx)
		if err != nil {
			return err
		}
		rows, err := t.encoder.EncodeClasses(ctx, b.Batch)
		if err != nil {
			return err
		}
		for i, k := range b.Counters {
			row := int(missing[k%n])
			if bad.has(row) {
				continue
			}
			if err := c.Put(row, rows[i*t.width:][:t.width]); err != nil {
				return err
			}
		}
		l.Recycle(b)
	}
	if n, first := bad.told(); n > 0 {
		r.report.Say("%s of %s could not be read, the first: %v", words.Count(n, t.side), words.Thousands(len(missing)),
			first)
	}
	return c.Sync()
}

// badRows are inputs that could not be read. Their samples are bad ones in training, where they are counted.
type badRows struct {
	mu   sync.Mutex
	rows map[int]error
}

func (b *badRows) add(row int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows[row] = err
}

func (b *badRows) has(row int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rows[row] != nil
}

// told returns how many there are, and what is wrong with the first.
func (b *badRows) told() (n int, first error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, row := range slices.Sorted(maps.Keys(b.rows)) {
		return len(b.rows), b.rows[row]
	}
	return 0, nil
}
