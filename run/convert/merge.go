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
	if err := folder.New(out, console.Lines(log).Say, func() error {
		store, err := checkpoint.NewStore(filepath.Join(out, runlog.CheckpointsDir), checkpoint.Retention{Last: 1})
		if err != nil {
			return err
		}
		return store.Save(ck.Step, snap)
	}); err != nil {
		return "", err
	}
	merged, err := checkpoint.Open(out)
	if err != nil {
		return "", err
	}
	return merged.Path, merged.Close()
}
