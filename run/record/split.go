package record

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/identity"
)

// Opened is the data that a run has opened, by which they are compared with what they were and with those of other
// ranks.
type Opened struct {
	Splits []*OpenedSplit // train first
	Pass   *Pass          // that reads what files hold; nil: none does
}

// OpenedSplit is a split of them.
type OpenedSplit struct {
	Name    string
	entries data.Entries
	Record  Split
	Inputs  []source.Input
	root    string

	Early  []earlyFile // of features, which are read when the data are opened
	Files  []string    // that hold pictures or features; see findFiles
	sums   []fileSum
	listed []identity.Sample
}

// earlyFile is a small file of features with the sum of what it holds.
type earlyFile struct {
	Path string
	Sum  identity.Sum
}

// mostEarly is the number of bytes that are read when data are opened, which takes some 20 ms.
const mostEarly = 32 << 20

// OpenSplit identifies a split by its entries and the files that it is read from.
func OpenSplit(ctx context.Context, cfg config.Config, name string, e data.Entries,
	inputs []source.Input) (*OpenedSplit, error) {
	s := &OpenedSplit{Name: name, entries: e, root: filepath.Clean(cfg.Data.Root)}
	sum, err := e.Sum(ctx, s.Short)
	if err != nil {
		return nil, err
	}
	s.Record = Split{Samples: e.Len, List: sum}
	seen, early := map[string]bool{}, int64(0)
	for _, in := range filesOfFolders(inputs) {
		st, err := os.Stat(in.Path)
		if err != nil || !st.Mode().IsRegular() || seen[in.Path] { // a folder, or a pattern
			continue
		}
		seen[in.Path] = true
		s.Inputs = append(s.Inputs, in)
		s.Record.Files = append(s.Record.Files, File{s.Short(in.Path), st.Size()})
		if !in.Content || early+st.Size() > mostEarly {
			continue
		}
		early += st.Size()
		sum, err := identity.Of(ctx, in.Path)
		if err != nil {
			return nil, err
		}
		s.Early = append(s.Early, earlyFile{in.Path, sum})
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

// Short is a path, or a name that begins with one, from data.root where it lies there: data that have moved stay the
// same.
func (s *OpenedSplit) Short(path string) string {
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
func (s *OpenedSplit) entryName(i int) string {
	e := s.entries.At(i)
	if e.Name != "" {
		return fmt.Sprintf("%.200s", s.Short(e.Name))
	}
	return fmt.Sprintf("number %d, %.60q", i+1, strings.Join(e.Rest, " | "))
}

// findFiles lists the files that hold pictures or features, each once and in the order of the samples.
func (s *OpenedSplit) findFiles(ctx context.Context) error {
	if s.Files != nil {
		return nil
	}
	seen := map[string]bool{}
	add := func(path string) {
		if !seen[path] {
			seen[path] = true
			s.Files = append(s.Files, path)
		}
	}
	for _, in := range s.Inputs {
		if in.Content {
			add(in.Path)
		}
	}
	last := ""
	for i := range s.entries.Len {
		if i%1024 == 0 && ctx.Err() != nil {
			s.Files = nil
			return ctx.Err()
		}
		for _, path := range s.entries.At(i).Files {
			if path != last { // of a shard
				add(path)
			}
			last = path
		}
	}
	s.sums = make([]fileSum, len(s.Files))
	for i, path := range s.Files {
		s.sums[i] = fileSum{Name: identity.Short(s.Short(path)), Size: -1}
	}
	return nil
}

// Short of a sum, which is not that of what was not read.
func shortSum(sum identity.Sum) uint64 { return max(1, binary.LittleEndian.Uint64(sum[:])) }

// Trained is the sum of the training data, zero where it is not known.
func (d *Opened) Trained() (sum identity.Sum) {
	for _, s := range d.Splits {
		if s.Name == "train" {
			sum = s.Record.List
		}
	}
	return sum
}
