package setup

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/run/folder"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

// KeptKernels are those that a run goes on with.
type KeptKernels struct {
	Fixed   bool // by fixed rules: it began before kernels were chosen
	Choices compute.Choices
}

// ReadKernels returns the kernels of the run that a checkpoint is of.
func ReadKernels(from *checkpoint.Checkpoint, say func(format string, args ...any)) (kept KeptKernels) {
	path := filepath.Join(folder.Of(from), runlog.KernelsFile)
	text, err := files.Read(path, files.MaxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		old, err := OwnConfig(from)
		kept.Fixed = err == nil && old.Compute.Tune != "off"
		return kept
	}
	if err == nil {
		err = json.Unmarshal(text, &kept.Choices)
	}
	if err != nil {
		say("changed since the checkpoint: the kernels of the run are not known (%s: %v), so the numbers may not be those of a run in one piece bit by bit", path, err)
	}
	return kept
}

// tellKept tells all ranks what rank 0 has kept.
func tellKept(g parallel.Group, kept *KeptKernels) error {
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

// shareKernels gives all ranks the kernels that rank 0 knows, of its run and of its machine. Nothing else is
// measured: ranks that choose for themselves would drift apart by rounding.
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
