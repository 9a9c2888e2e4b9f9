package run

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

// keptKernels are those that a run goes on with.
type keptKernels struct {
	Fixed   bool // by fixed rules: it began before kernels were chosen
	Choices compute.Choices
}

// readKernels returns the kernels of the run that a checkpoint is of.
func (r *Run) readKernels(from *checkpoint.Checkpoint) (kept keptKernels) {
	path := filepath.Join(folderOf(from), runlog.KernelsFile)
	text, err := files.Read(path, files.MaxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		old, err := ownConfig(from)
		kept.Fixed = err == nil && old.Compute.Tune != "off"
		return kept
	}
	if err == nil {
		err = json.Unmarshal(text, &kept.Choices)
	}
	if err != nil {
		r.report.Say("changed since the checkpoint: the kernels of the run are not known (%s: %v), so the numbers may not be those of a run in one piece bit by bit", path, err)
	}
	return kept
}

// tellKept tells all ranks what rank 0 has kept.
func tellKept(g parallel.Group, kept *keptKernels) error {
	if g.Size() == 1 {
		return nil
	}
	text, err := json.Marshal(kept)
	if err := parallel.Agree(g, err); err != nil {
		return err
	}
	if text, err = parallel.Told(g, text); err != nil {
		return err
	}
	return parallel.Agree(g, json.Unmarshal(text, kept))
}

// shareKernels gives all ranks the kernels that rank 0 knows, of its run and of its machine. Nothing else is measured: ranks
// that choose for themselves would drift apart by rounding.
func shareKernels(g parallel.Group, e *compute.Engine) error {
	text, err := json.Marshal(e.Choices())
	if err := parallel.Agree(g, err); err != nil {
		return err
	}
	if text, err = parallel.Told(g, text); err != nil {
		return err
	}
	var c compute.Choices
	if err := parallel.Agree(g, json.Unmarshal(text, &c)); err != nil {
		return err
	}
	e.Follow(c, true)
	return nil
}

// keepKernels writes the kernels of products that were met since the last call to the run folder, for those who go on with the
// run, and what was measured to the user's cache.
func (r *Run) keepKernels() {
	if r.engine.Decided() == r.decided {
		return
	}
	r.engine.SaveTuning()
	if !r.first() {
		return
	}
	if err := r.writeKernels(); err != nil {
		r.warn("%v: to go on with the run may not give the same numbers bit by bit", err)
	}
}

// writeKernels writes the kernels that the engine has chosen, and removes the file of an engine that chooses none.
func (r *Run) writeKernels() error {
	path := filepath.Join(r.dir, runlog.KernelsFile)
	if r.engine.Tuning().Mode == "off" {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	r.decided = r.engine.Decided()
	text, err := json.MarshalIndent(r.engine.Chosen(), "", "  ")
	if err != nil {
		return err
	}
	return files.Replace(path, append(text, '\n'))
}
