package folder

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

// Environment returns what the newest session of a run folder ran on, and whether that is
// known.
func Environment(dir string) (e runlog.Environment, ok bool) {
	text, err := files.Read(filepath.Join(dir, runlog.EnvironmentFile), files.MaxRecord)
	if err != nil || json.Unmarshal(text, &e) != nil {
		return runlog.Environment{}, false
	}
	return e, true
}

// Of returns the run folder of a checkpoint, its own folder where it lies in none.
func Of(ck *checkpoint.Checkpoint) string {
	dir := filepath.Dir(ck.Path)
	if filepath.Base(dir) == runlog.CheckpointsDir {
		return filepath.Dir(dir)
	}
	return dir
}

// HasRun reports whether a folder holds the checkpoints of a run.
func HasRun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, runlog.CheckpointsDir))
	return err == nil
}

// Writable makes the run folder and tries to write there, before the work that a
// run begins with.
func Writable(dir string) error {
	err := os.MkdirAll(dir, 0o777)
	if err == nil {
		err = files.Probe(dir)
	}
	if err != nil {
		return fmt.Errorf("run.out: %w: make the folder writable or choose another with --out", err)
	}
	return nil
}
