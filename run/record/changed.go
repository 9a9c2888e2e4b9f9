package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

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

// ChangedError says that a run cannot be resumed as it is, because its data are not what they were.
type ChangedError struct {
	Folder      string // of the run
	Differences []Difference
}

// Error names what changed and what to do.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("the data are not those that the run in %s was trained on:%s\nput them back as they were, or resume with these with --set data.changed=%s (the numbers are then not those of a run in one piece), or start anew with --resume never",
		e.Folder, LinesOf(e.Differences), source.DataAccepted)
}

func LinesOf(list []Difference) string {
	var b strings.Builder
	for _, d := range list {
		fmt.Fprintf(&b, "\n  %s", d)
	}
	return b.String()
}

// Known is what is known of the data of a run before it is resumed.
type Known struct {
	Folder string
	Record Data
	sums   map[string]splitSums
}

// ReadKnown reads what a run folder and a checkpoint of it, nil for none, say of the data. It is nil where they say
// nothing.
func ReadKnown(dir string, ck *checkpoint.Checkpoint) (*Known, error) {
	k := &Known{Folder: dir, sums: readSums(dir)}
	var err error
	if k.Record, err = Read(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if k.Record.Splits == nil {
		k.Record.Splits = map[string]*Split{}
	}
	if ck != nil { // which may have been made from other data than the newest
		if sum, ok := data.LoaderIdentity(ck.Counters); ok {
			if s := k.Record.Splits["train"]; s == nil || s.List != sum {
				k.Record.Splits["train"] = &Split{Samples: -1, List: sum}
			}
		}
	}
	if len(k.Record.Splits) == 0 {
		return nil, nil
	}
	return k, nil
}

// compare says how the lists of a split, and files of features that can be read at once, differ from what they were.
func (k *Known) compare(ctx context.Context, s *OpenedSplit) (list []Difference, err error) {
	was := k.Record.Splits[s.Name]
	if was == nil {
		return nil, nil
	}
	if was.List != s.Record.List {
		what, err := k.listChanged(ctx, s, was)
		if err != nil {
			return nil, err
		}
		if what != "" {
			return []Difference{{s.Name, what + changedFiles(was, s)}}, nil
		}
	}
	sums := map[uint64]uint64{}
	for _, f := range k.sums[s.Name].Files {
		sums[f.Name] = f.Sum
	}
	for _, f := range s.Early {
		if sum := sums[identity.Short(s.Short(f.Path))]; sum != 0 && sum != shortSum(f.Sum) {
			list = append(list, Difference{s.Name, s.Short(f.Path) + " has another content than it had"})
		}
	}
	return list, nil
}

// listChanged says how the samples differ, nothing where they are the same and only their key is another one.
func (k *Known) listChanged(ctx context.Context, s *OpenedSplit, was *Split) (string, error) {
	sums, ok := k.sums[s.Name]
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
	if n := s.Record.Samples; was.Samples >= 0 && was.Samples != n {
		return fmt.Sprintf("%s, and there were %s", words.Count(n, "sample"), words.Thousands(was.Samples)), nil
	}
	return fmt.Sprintf("the %s are others, or say something else, or stand in another order (sum %v, now %v)",
		words.Count(s.Record.Samples, "sample"), was.List, s.Record.List), nil
}

// list makes the short sums of all samples.
func (s *OpenedSplit) list(ctx context.Context) (err error) {
	if s.listed == nil && s.entries.Len <= mostSums {
		s.listed, err = s.entries.Samples(ctx, s.Short)
	}
	return err
}

// changedFiles names the files of another size than they had.
func changedFiles(was *Split, s *OpenedSplit) string {
	sizes := map[string]int64{}
	for _, f := range was.Files {
		sizes[f.Path] = f.Bytes
	}
	var list []string
	for _, f := range s.Record.Files {
		switch n, known := sizes[f.Path]; {
		case !known && len(was.Files) > 0:
			list = append(list, f.Path+" is new")
		case known && n != f.Bytes:
			list = append(list, fmt.Sprintf("%s has %s bytes and had %s", f.Path, words.Thousands(int(f.Bytes)),
				words.Thousands(int(n))))
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

// CompareAll is compare of all splits.
func (k *Known) CompareAll(ctx context.Context, d *Opened) (all []Difference, err error) {
	for _, s := range d.Splits {
		list, err := k.compare(ctx, s)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// Note says how a split is not what it was.
func (k *Known) Note(ctx context.Context, s *OpenedSplit, say func(format string, args ...any)) {
	list, err := k.compare(ctx, s)
	if err != nil { // who reads the data says why
		return
	}
	for _, d := range list {
		say("note: this is not the split that %s had under its name: %s", k.Folder, d)
	}
}

// Without is what is known but for some splits.
func (k *Known) Without(splits []string) *Known {
	out := &Known{k.Folder, k.Record, maps.Clone(k.sums)}
	for _, name := range splits {
		delete(out.sums, name)
	}
	return out
}

// OtherFile is the first file of a split that is another one on rank 0, which has these sums.
func OtherFile(s *OpenedSplit, theirs []byte) error {
	const hint = "give all machines the same data"
	own := s.Packed()
	if len(theirs) != len(own) {
		return fmt.Errorf("%s: the samples lie in %s here and in %s on rank 0: %s", s.Name,
			words.Count(len(s.sums), "file"), words.Thousands(len(theirs)/24), hint)
	}
	for i, path := range s.Files {
		if at := 24 * i; !bytes.Equal(own[at:at+24], theirs[at:at+24]) {
			return fmt.Errorf("%s: %s holds something else than on rank 0 (and others may too): %s", s.Name,
				s.Short(path), hint)
		}
	}
	return nil
}

// Packed is what is known of the files of a split, 24 bytes each.
func (s *OpenedSplit) Packed() (b []byte) {
	for _, f := range s.sums {
		b = f.append(b)
	}
	return b
}
