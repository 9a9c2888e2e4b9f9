package convert

import (
	"errors"
	"io"
	"path/filepath"

	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/run/folder"
	"github.com/geoalign/geoalign/run/setup"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

// Merge writes a run folder at out whose one checkpoint is that at path with its adapters of low rank, scales and
// shifts taken in by their layers (model.lora, model.tuning.ssf), see train.Merge. It returns the folder of the
// checkpoint. A folder that holds a run already is an *ArgumentError, as is a checkpoint without anything to take in.
// Notes go to log; nil: nowhere.
func Merge(path, out string, log io.Writer) (string, error) {
	ck, err := checkpoint.Open(path, setup.ModelGroups...)
	if err != nil {
		return "", err
	}
	defer ck.Close()
	snap, _, err := train.Merge(ck)
	if errors.Is(err, train.ErrNoAdapters) {
		return "", console.Argument("%s: %w: what weights can take in they have already", ck.Path, err)
	}
	if err != nil {
		return "", err
	}
	if err := newRun(out, ck.Step, snap, console.Lines(log).Say, nil); err != nil {
		return "", err
	}
	merged, err := checkpoint.Open(out)
	if err != nil {
		return "", err
	}
	return merged.Path, merged.Close()
}

// newRun writes a run folder with one checkpoint, and what more writes beside it; nil: nothing.
func newRun(dir string, step int, snap checkpoint.Snapshot, say func(format string, args ...any),
	more func() error) error {
	return folder.New(dir, say, func() error {
		store, err := checkpoint.NewStore(filepath.Join(dir, runlog.CheckpointsDir), checkpoint.Retention{})
		if err == nil {
			err = store.Save(step, snap)
		}
		if err == nil && more != nil {
			err = more()
		}
		return err
	})
}
