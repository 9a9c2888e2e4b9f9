package run

import (
	"context"
	"slices"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// noteData says where a split is not the one that the run was trained or evaluated on under its name.
func (t *Trained) noteData(ctx context.Context, name string, set *Split) {
	if t.log == nil || t.group.Rank() > 0 {
		return
	}
	known, err := knownDataOf(t.Folder(), nil)
	e, ok := data.EntriesOf(set.listed())
	if err != nil || known == nil || known.record.Splits[name] == nil || !ok {
		return
	}
	s, err := openedSplitOf(ctx, t.Config, name, e, source.Inputs(t.Config.Source(), name))
	if err == nil {
		known.note(ctx, s, Lines(t.log).Say)
	}
}

// noteOtherSplit says the same of a run that starts from a checkpoint and evaluates on files of the same names.
func (r *Run) noteOtherSplit(ck *checkpoint.Checkpoint) {
	known, err := knownDataOf(folderOf(ck), nil)
	if err != nil || known == nil || !r.first() || r.data == nil {
		return
	}
	for _, s := range r.data.splits {
		was := known.record.Splits[s.name]
		if s.name != "train" && was != nil && slices.EqualFunc(was.Files, s.record.Files, func(a, b FileRecord) bool { return a.Path == b.Path }) {
			known.note(context.Background(), s, r.report.Say)
		}
	}
}

// note says how a split is not what it was.
func (k *knownData) note(ctx context.Context, s *openedSplit, say func(format string, args ...any)) {
	list, err := k.compare(ctx, s)
	if err != nil { // who reads the data says why
		return
	}
	for _, d := range list {
		say("note: this is not the split that %s had under its name: %s", k.folder, d)
	}
}
