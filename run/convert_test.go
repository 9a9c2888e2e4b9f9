package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/source"
)

// parquetPairs is a fit to the columns of a .parquet file of three rows, whose copies go to a folder.
func parquetPairs(t *testing.T, dir, cache string) config.Config {
	t.Helper()
	cfg, err := config.Load("", []string{"run.out=" + dir, "model.system=align", "model.align.method=ridge", "data.kind=pairs", "data.cache_dir=" + cache,
		"data.root=../data/features/testdata", "data.pairs.image=columns.parquet", "data.pairs.image_tensor=image", "data.pairs.val_samples=0",
		"data.pairs.text=columns.parquet", "data.pairs.text_tensor=text", "data.pairs.test_samples=0"})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// copies counts the files of a folder.
func copies(t *testing.T, dir string) int {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return len(list)
}

// stopper stops when it hears of a phase.
type stopper struct {
	recorder
	stop func()
}

func (s *stopper) Phase(name string, done, total int) {
	s.recorder.Phase(name, total, total)
	s.stop()
}

// Whoever reads features that must be converted tells how far that is, and ends in the middle of it
// when asked to, with nothing left behind.
func TestConversion(t *testing.T) {
	dir, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	cfg := parquetPairs(t, dir, cache)
	ctx, stop := context.WithCancel(t.Context())
	s := &stopper{stop: stop}
	if r, err := New(ctx, cfg, Options{Reporter: s}); !errors.Is(err, context.Canceled) || copies(t, cache) != 0 {
		t.Errorf("a run that was stopped: %v, %v, %d copies", r, err, copies(t, cache))
	}
	if got := fmt.Sprint(s.phases, s.ended); got != "[converting columns.parquet] 1" {
		t.Errorf("told %s", got)
	}
	trained(t, cfg, Options{})
	if copies(t, cache) != 2 {
		t.Errorf("%d copies of two columns", copies(t, cache))
	}

	// A checkpoint is opened in another place, without copies, and embeds a column.
	other := filepath.Join(t.TempDir(), "other")
	open := func(ctx context.Context) (*Trained, []string, error) {
		var phases []string
		o, err := Open(dir, OpenOptions{Set: []string{"data.cache_dir=" + other}, Prepare: func(cfg config.Config) error {
			return source.Convert(ctx, cfg.Source(), func(phase string, done, of int) { phases = append(phases, phase) })
		}})
		return o, phases, err
	}
	if _, _, err := open(ctx); !errors.Is(err, context.Canceled) || copies(t, other) != 0 {
		t.Errorf("an opening that was stopped: %v, %d copies", err, copies(t, other))
	}
	o, phases, err := open(t.Context())
	if err != nil || len(phases) == 0 || copies(t, other) != 2 {
		t.Fatalf("opened: %v, told %v, %d copies", err, phases, copies(t, other))
	}
	defer o.Close()
}
