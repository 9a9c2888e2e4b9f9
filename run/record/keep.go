package record

import (
	"maps"
	"slices"

	"github.com/geoalign/geoalign/data"
)

// Keep writes what identifies the data of a run into its folder: lists at once, what files hold once all
// were read. It keeps what was known of the files of lists that are the same, but for splits whose changes were
// accepted.
func Keep(dir string, known *Known, accepted []string, splits []*OpenedSplit) error {
	record := Data{Rule: data.EntriesRule, Splits: map[string]*Split{}}
	sums := map[string]splitSums{}
	if k := known; k != nil && k.Folder == dir { // splits that are not in use now
		maps.Copy(record.Splits, k.Record.Splits)
		maps.Copy(sums, k.sums)
	}
	for _, s := range splits {
		now, its := s.Record, splitSums{s.Record.List, s.listed, s.sums}
		if now.Contents.Files == 0 { // they are not read yet
			its.Files = nil
			if was := known.same(s); was != nil && !slices.Contains(accepted, s.Name) {
				now.Contents, its.Files = was.Contents, known.sums[s.Name].Files
			}
		}
		if len(its.Files) > mostSums {
			its.Files = nil
		}
		record.Splits[s.Name], sums[s.Name] = &now, its
	}
	if err := record.write(dir); err != nil {
		return err
	}
	if splits[0].listed == nil { // they are not made yet
		return nil
	}
	return writeSums(dir, sums)
}

// same is what is known of a split with the same list, nil where nothing is.
func (k *Known) same(s *OpenedSplit) *Split {
	if k == nil {
		return nil
	}
	if was := k.Record.Splits[s.Name]; was != nil && was.List == s.Record.List {
		return was
	}
	return nil
}
