package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// Difference is how a split is not what it was.
type Difference struct {
	Split string `json:"split"`
	What  string `json:"what"`
}

// String is one line.
func (d Difference) String() string { return d.Split + ": " + d.What }

// DataChangedError says that a run cannot be resumed as it is, because its data are not what they were.
type DataChangedError struct {
	Folder      string // of the run
	Differences []Difference
}

// Error names what changed and what to do.
func (e *DataChangedError) Error() string {
	return fmt.Sprintf("the data are not those that the run in %s was trained on:%s\nput them back as they were, or resume with these with --set data.changed=%s (the numbers are then not those of a run in one piece), or start anew with --resume never",
		e.Folder, linesOf(e.Differences), source.DataAccepted)
}

func linesOf(list []Difference) string {
	var b strings.Builder
	for _, d := range list {
		fmt.Fprintf(&b, "\n  %s", d)
	}
	return b.String()
}

// knownData is what is known of the data of a run before it is resumed.
type knownData struct {
	folder string
	record DataRecord
	sums   map[string]splitSums
}

// knownDataOf reads what a run folder and a checkpoint of it, nil for none, say of the data. It is nil where they say nothing.
func knownDataOf(dir string, ck *checkpoint.Checkpoint) (*knownData, error) {
	k := &knownData{folder: dir, sums: readSums(dir)}
	var err error
	if k.record, err = ReadDataRecord(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if k.record.Splits == nil {
		k.record.Splits = map[string]*SplitRecord{}
	}
	if ck != nil { // which may have been made from other data than the newest
		if sum, ok := data.LoaderIdentity(ck.Counters); ok {
			if s := k.record.Splits["train"]; s == nil || s.List != sum {
				k.record.Splits["train"] = &SplitRecord{Samples: -1, List: sum}
			}
		}
	}
	if len(k.record.Splits) == 0 {
		return nil, nil
	}
	return k, nil
}

// compare says how the lists of a split, and files of features that can be read at once, differ from what they were.
func (k *knownData) compare(ctx context.Context, s *openedSplit) (list []Difference, err error) {
	was := k.record.Splits[s.name]
	if was == nil {
		return nil, nil
	}
	if was.List != s.record.List {
		what, err := k.listChanged(ctx, s, was)
		if err != nil {
			return nil, err
		}
		if what != "" {
			return []Difference{{s.name, what + changedFiles(was, s)}}, nil
		}
	}
	sums := map[uint64]uint64{}
	for _, f := range k.sums[s.name].Files {
		sums[f.Name] = f.Sum
	}
	for _, f := range s.early {
		if sum := sums[identity.Short(s.short(f.path))]; sum != 0 && sum != shortSum(f.sum) {
			list = append(list, Difference{s.name, s.short(f.path) + " has another content than it had"})
		}
	}
	return list, nil
}

// listChanged says how the samples differ, nothing where they are the same and only their key is another one.
func (k *knownData) listChanged(ctx context.Context, s *openedSplit, was *SplitRecord) (string, error) {
	sums, ok := k.sums[s.name]
	if ok && sums.List == was.List && len(sums.Samples) > 0 {
		if err := s.list(ctx); err != nil {
			return "", err
		}
		if slices.Equal(sums.Samples, s.listed) {
			if s.entries.Key != nil {
				return "", nil
			}
			return "other images have the same id", nil
		}
		return identity.Compare(sums.Samples, s.listed).Words("sample", s.entryName), nil
	}
	if n := s.record.Samples; was.Samples >= 0 && was.Samples != n {
		return fmt.Sprintf("%s, and there were %s", words.Count(n, "sample"), words.Thousands(was.Samples)), nil
	}
	return fmt.Sprintf("the %s are others, or say something else, or stand in another order (sum %v, now %v)", words.Count(s.record.Samples, "sample"), was.List, s.record.List), nil
}

// list makes the short sums of all samples.
func (s *openedSplit) list(ctx context.Context) (err error) {
	if s.listed == nil && s.entries.Len <= mostSums {
		s.listed, err = s.entries.Samples(ctx, s.short)
	}
	return err
}

// changedFiles names the files of another size than they had.
func changedFiles(was *SplitRecord, s *openedSplit) string {
	sizes := map[string]int64{}
	for _, f := range was.Files {
		sizes[f.Path] = f.Bytes
	}
	var list []string
	for _, f := range s.record.Files {
		switch n, known := sizes[f.Path]; {
		case !known && len(was.Files) > 0:
			list = append(list, f.Path+" is new")
		case known && n != f.Bytes:
			list = append(list, fmt.Sprintf("%s has %s bytes and had %s", f.Path, words.Thousands(int(f.Bytes)), words.Thousands(int(n))))
		}
		delete(sizes, f.Path)
	}
	for _, f := range was.Files {
		if _, left := sizes[f.Path]; left {
			list = append(list, f.Path+" is not read any more")
		}
	}
	if n := len(list); n > 3 {
		list = append(list[:3], fmt.Sprintf("%d more", n-3))
	}
	if list == nil {
		return ""
	}
	return " [" + strings.Join(list, ", ") + "]"
}

// compareAll is compare of all splits.
func (k *knownData) compareAll(ctx context.Context, d *openedData) (all []Difference, err error) {
	for _, s := range d.splits {
		list, err := k.compare(ctx, s)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// identifyData identifies the data that was opened.
func (b *opening) identifyData(ctx context.Context) (err error) {
	b.data, err = b.openedDataOf(ctx, b.trains)
	return err
}

// sameAsBefore compares the data with those of the run that is resumed. Rank 0 does: the others have the same.
func (b *opening) sameAsBefore(ctx context.Context) error {
	if b.from == nil {
		return nil
	}
	return parallel.Alone(b.group, func() error {
		known, err := knownDataOf(folderOf(b.from), b.from)
		if err != nil {
			return fmt.Errorf("%w: remove the file to resume without a comparison of the data", err)
		}
		if known == nil {
			b.report.Say("the checkpoint does not say which data it was trained on, as those of earlier versions: these could not be compared with it")
			return nil
		}
		b.known = known
		all, err := known.compareAll(ctx, b.data)
		if err != nil {
			return err
		}
		for _, d := range all {
			b.accepted = append(b.accepted, d.Split)
		}
		return b.changed(all)
	})
}

// changed is what a run does about data that have changed.
func (r *Run) changed(all []Difference) error {
	if len(all) == 0 {
		return nil
	}
	if r.cfg.Data.Changed != source.DataAccepted {
		return &DataChangedError{r.known.folder, all}
	}
	for _, d := range all {
		r.report.Say("changed since the checkpoint: data of %s, so the numbers are not those of a run in one piece", d)
	}
	return nil
}
