package run

import (
	"encoding/json"
	"path/filepath"

	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

// readEnvironment returns what the newest session of a run folder ran on, and whether that is
// known.
func readEnvironment(dir string) (e runlog.Environment, ok bool) {
	text, err := files.Read(filepath.Join(dir, runlog.EnvironmentFile), files.MaxRecord)
	if err != nil || json.Unmarshal(text, &e) != nil {
		return runlog.Environment{}, false
	}
	return e, true
}

// folderOf returns the run folder of a checkpoint, its own folder where it lies in none.
func folderOf(ck *checkpoint.Checkpoint) string {
	dir := filepath.Dir(ck.Path)
	if filepath.Base(dir) == runlog.CheckpointsDir {
		return filepath.Dir(dir)
	}
	return dir
}

// tellKernels says where a run goes on with other kernels or threads than before, whoever has
// chosen them: a setting, a library that was found or not, or the processor.
func (r *Run) tellKernels(from *checkpoint.Checkpoint) {
	if was, ok := readEnvironment(folderOf(from)); ok && was.Kernels != "" && was.Kernels != r.engine.Describe() {
		r.report.Say("changed since the checkpoint: kernels = %q (was %q), so the numbers are not those of a run in one piece bit by bit", r.engine.Describe(), was.Kernels)
	}
}

// tellData says where a run goes on with data that has grown or shrunk, whose samples come in another order.
func (r *Run) tellData() {
	s := r.Session()
	if s == nil { // a fit has no place in its data
		return
	}
	if was, now := s.Loader().Resized(); was > 0 {
		r.report.Say("changed since the checkpoint: samples of an epoch = %d (was %d), so the run goes on at another place of its data, and the numbers are not those of a run in one piece", now, was)
	}
}

// tellDecoder says where a run that reads images goes on with another decoder of JPEG files, whoever has chosen it.
func (r *Run) tellDecoder(from *checkpoint.Checkpoint) {
	now := images.JPEGDecoder().String()
	if was, ok := readEnvironment(folderOf(from)); ok && was.Decoder != "" && was.Decoder != now && r.cfg.ReadsImageFiles() {
		r.report.Say("changed since the checkpoint: decoder of JPEG files = %q (was %q), so pixels differ by a few grey levels and the numbers are not those of a run in one piece", now, was.Decoder)
	}
}
