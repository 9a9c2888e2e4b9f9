package run

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/evalfiles"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/identity"
)

// openedData is the data that a run has opened, by which they are compared with what they were and with those of other ranks.
type openedData struct {
	splits []*openedSplit // train first
	pass   *dataPass      // that reads what files hold; nil: none does
}

// openedSplit is a split of them.
type openedSplit struct {
	name    string
	entries data.Entries
	record  SplitRecord
	inputs  []source.Input
	root    string

	early  []earlyFile // of features, which are read when the data are opened
	files  []string    // that hold pictures or features; see findFiles
	sums   []fileSum
	listed []identity.Sample
}

// earlyFile is a small file of features with the sum of what it holds.
type earlyFile struct {
	path string
	sum  identity.Sum
}

// mostEarly is the number of bytes that are read when data are opened, which takes some 20 ms.
const mostEarly = 32 << 20

// openedSplitOf identifies a split by its entries and the files that it is read from.
func openedSplitOf(ctx context.Context, cfg config.Config, name string, e data.Entries, inputs []source.Input) (*openedSplit, error) {
	s := &openedSplit{name: name, entries: e, root: filepath.Clean(cfg.Data.Root)}
	sum, err := e.Sum(ctx, s.short)
	if err != nil {
		return nil, err
	}
	s.record = SplitRecord{Samples: e.Len, List: sum}
	seen, early := map[string]bool{}, int64(0)
	for _, in := range filesOfFolders(inputs) {
		st, err := os.Stat(in.Path)
		if err != nil || !st.Mode().IsRegular() || seen[in.Path] { // a folder, or a pattern
			continue
		}
		seen[in.Path] = true
		s.inputs = append(s.inputs, in)
		s.record.Files = append(s.record.Files, FileRecord{s.short(in.Path), st.Size()})
		if !in.Content || early+st.Size() > mostEarly {
			continue
		}
		early += st.Size()
		sum, err := identity.Of(ctx, in.Path)
		if err != nil {
			return nil, err
		}
		s.early = append(s.early, earlyFile{in.Path, sum})
	}
	return s, nil
}

// filesOfFolders puts the files of a folder of features in its place.
func filesOfFolders(inputs []source.Input) (list []source.Input) {
	for _, in := range inputs {
		entries, err := os.ReadDir(in.Path)
		if !in.Content || err != nil { // a file
			list = append(list, in)
			continue
		}
		for _, e := range entries {
			x := in
			x.Path, x.Folder = filepath.Join(in.Path, e.Name()), false
			list = append(list, x)
		}
	}
	return list
}

// short is a path, or a name that begins with one, from data.root where it lies there: data that have moved stay the same.
func (s *openedSplit) short(path string) string {
	if s.root != "." {
		if rest, ok := strings.CutPrefix(path, s.root); ok && len(rest) > 1 && os.IsPathSeparator(rest[0]) {
			path = rest[1:]
		}
	}
	if os.PathSeparator != '/' {
		path = filepath.ToSlash(path)
	}
	return path
}

// entryName names entry i for people.
func (s *openedSplit) entryName(i int) string {
	e := s.entries.At(i)
	if e.Name != "" {
		return fmt.Sprintf("%.200s", s.short(e.Name))
	}
	return fmt.Sprintf("number %d, %.60q", i+1, strings.Join(e.Rest, " | "))
}

// findFiles lists the files that hold pictures or features, each once and in the order of the samples.
func (s *openedSplit) findFiles(ctx context.Context) error {
	if s.files != nil {
		return nil
	}
	seen := map[string]bool{}
	add := func(path string) {
		if !seen[path] {
			seen[path] = true
			s.files = append(s.files, path)
		}
	}
	for _, in := range s.inputs {
		if in.Content {
			add(in.Path)
		}
	}
	last := ""
	for i := range s.entries.Len {
		if i%1024 == 0 && ctx.Err() != nil {
			s.files = nil
			return ctx.Err()
		}
		for _, path := range s.entries.At(i).Files {
			if path != last { // of a shard
				add(path)
			}
			last = path
		}
	}
	s.sums = make([]fileSum, len(s.files))
	for i, path := range s.files {
		s.sums[i] = fileSum{Name: identity.Short(s.short(path)), Size: -1}
	}
	return nil
}

// short of a sum, which is not that of what was not read.
func shortSum(sum identity.Sum) uint64 { return max(1, binary.LittleEndian.Uint64(sum[:])) }

// openedDataOf identifies the training data and what is evaluated on. train and set are nil where there are none.
func (r *Run) openedDataOf(ctx context.Context, train any) (*openedData, error) {
	var out openedData
	add := func(name string, x any, inputs []source.Input) error {
		e, ok := data.EntriesOf(x)
		if !ok {
			return nil
		}
		s, err := openedSplitOf(ctx, r.cfg, name, e, inputs)
		if err == nil {
			out.splits = append(out.splits, s)
		}
		return err
	}
	if err := add("train", train, source.Inputs(r.cfg.Source(), "train")); err != nil {
		return nil, err
	}
	if r.set == nil || r.cfg.Eval.Split == "train" {
		return &out, nil
	}
	name, inputs := r.set.named(r.cfg)
	return &out, add(name, r.set.listed(), inputs)
}

// named is the name of the split in a DataRecord, and what it is read from.
func (s *Split) named(cfg config.Config) (string, []source.Input) {
	if s.listed() != nil && s.Galleries == nil && s.kept.examples == nil && s.kept.pairs == nil {
		return sentencesSplit, evalfiles.SentencesInputs(cfg)
	}
	return cfg.Eval.Split, source.Inputs(cfg.Source(), cfg.Eval.Split)
}

// trained is the sum of the training data, zero where it is not known.
func (d *openedData) trained() (sum identity.Sum) {
	for _, s := range d.splits {
		if s.name == "train" {
			sum = s.record.List
		}
	}
	return sum
}

// listed is what has the entries of a split; nil: there is nothing.
func (s *Split) listed() any {
	switch {
	case s == nil:
		return nil
	case s.Eval != nil:
		return s.Eval
	case s.Galleries != nil:
		return s.Galleries
	case s.kept.examples != nil:
		return s.kept.examples
	case s.kept.pairs != nil:
		return s.kept.pairs
	case s.kept.sentences != nil:
		return s.kept
	}
	return nil
}

// Entries implements data.Listed: those of eval.sentences, one task behind the other.
func (f evalFiles) Entries() data.Entries {
	var list []data.Entries
	for _, s := range f.sentences {
		list = append(list, s.Test.Entries())
	}
	return data.JoinEntries(list...)
}
