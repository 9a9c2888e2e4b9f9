package run

import (
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/run/folder"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// tellKernels says where a run goes on with other kernels or threads than before, whoever has
// chosen them: a setting, an earlier version of the program, or the processor.
func (r *Run) tellKernels(from *checkpoint.Checkpoint) {
	if was, ok := folder.Environment(folder.Of(from)); ok && was.Kernels != "" && was.Kernels != r.engine.Describe() {
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

// tellDecoder says where a run that reads images goes on with other pixels of JPEG files, as an earlier version had.
func (r *Run) tellDecoder(from *checkpoint.Checkpoint) {
	if was, ok := folder.Environment(folder.Of(from)); ok && was.Decoder != "" && !images.SamePixels(was.Decoder) &&
		r.cfg.Has(section.ImageFiles) {
		r.report.Say("changed since the checkpoint: decoder of JPEG files = %q (was %q), so pixels differ by a few grey levels and the numbers are not those of a run in one piece", images.Pixels, was.Decoder)
	}
}
