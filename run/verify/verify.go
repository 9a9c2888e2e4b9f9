// Package verify reads everything that this program writes, a folder or a file, and says of each file whether it is
// whole.
//
//	r, err := verify.Path(ctx, "runs/quickstart/embeddings-test", true)
//	for _, f := range r.Files { ... f.State ... }
//
// A file is whole where all of its bytes are those of the checksum that was noted when it was written. One that has
// none is read as far as its form can be checked. Nothing is believed of what was read earlier: damage that the disk
// does on its own is found too.
package verify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// State says what is known of a file.
type State string

// States.
const (
	Whole   State = "whole"
	Damaged State = "damaged"
	NoSum   State = "no checksum" // it has the form of its kind, and nothing says what its bytes should be
)

// File is what was found of a file.
type File struct {
	Name    string `json:"name"` // in the folder
	Bytes   int64  `json:"bytes"`
	Sum     string `json:"sum,omitempty"` // checksum that it should have, where one is written elsewhere
	State   State  `json:"state,omitempty"`
	Holds   string `json:"holds,omitempty"` // what is in it, in words
	Problem string `json:"problem,omitempty"`
}

// Fact is something that a folder or file says of itself.
type Fact struct {
	What string `json:"what"`
	Is   string `json:"is"`
}

// Report is what was found at a path.
type Report struct {
	Path        string                `json:"path"`
	Kind        string                `json:"kind"`
	Facts       []Fact                `json:"facts,omitempty"`
	Files       []File                `json:"files,omitempty"`
	Checkpoints []checkpoint.Verified `json:"checkpoints,omitempty"`
	Damaged     int                   `json:"damaged"` // checkpoints and files
}

// Err says what is damaged; nil: nothing is.
func (r *Report) Err() error {
	var checkpoints, inFiles, parts []string
	for _, c := range r.Checkpoints {
		if c.Problem != "" {
			checkpoints = append(checkpoints, c.Problem)
		}
	}
	for _, f := range r.Files {
		if f.State == Damaged {
			inFiles = append(inFiles, f.Name+": "+f.Problem)
		}
	}
	if checkpoints != nil {
		parts = append(parts, fmt.Sprintf("%d of %s damaged: %s", len(checkpoints),
			words.Count(len(r.Checkpoints), "checkpoint"), strings.Join(checkpoints, "; ")))
	}
	if inFiles != nil {
		parts = append(parts, fmt.Sprintf("%d of %s damaged: %s", len(inFiles), words.Count(len(r.Files), "file"),
			strings.Join(inFiles, "; ")))
	}
	if parts == nil {
		return nil
	}
	return errors.New(strings.Join(parts, "; "))
}

// damaged counts what is.
func (r *Report) damaged() (n int) {
	for _, c := range r.Checkpoints {
		if c.Problem != "" {
			n++
		}
	}
	for _, f := range r.Files {
		if f.State == Damaged {
			n++
		}
	}
	return n
}

// Kinds of what can be looked at.
const (
	Run      = "run folder"
	Step     = "step folder"
	Gallery  = "gallery"
	Index    = "index"
	Features = "features"
	Export   = "export folder"
	Ablation = "ablation folder"
	Cache    = "cache folder"
)

// kinds are tried in this order.
var kinds = []struct {
	name string
	what string // in words, for who gave something else
	is   func(path string, folder bool) bool
	look func(l *looker, dir string) error
}{
	{Step, "a folder of one step", func(p string, folder bool) bool { return folder && checkpoint.IsStep(p) }, (*looker).checkpoints},
	{Run, "a run folder", isRun, (*looker).run},
	{Ablation, "a folder of ablate", isAblation, (*looker).ablation},
	{Gallery, "a gallery (embed)", isGallery, (*looker).gallery},
	{Cache, "a cache folder (data.cache_dir)", isCache, (*looker).cache},
	{Export, "a folder of export", isExport, (*looker).export},
	{Index, "an index (.search)", func(p string, folder bool) bool { return !folder && isIndex(p) }, (*looker).index},
	{Features, "a file of features (.npy, .npz, .safetensors, .pt, .pth, .parquet)", func(p string, folder bool) bool { return !folder && isFeatures(p) }, (*looker).features},
}

// Kind says what there is at a path. The error lists what there could be.
func Kind(path string) (string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	var known []string
	for _, k := range kinds {
		if k.is(path, st.IsDir()) {
			return k.name, nil
		}
		known = append(known, k.what)
	}
	last := len(known) - 1
	return "", fmt.Errorf("%s is not a file or folder that inspect reads: give %s or %s", path,
		strings.Join(known[:last], ", "), known[last])
}

// Path looks at a folder or file. With read it reads every byte and compares what has a checksum with it; else it
// says what there is. Damage is part of the report and no error.
func Path(ctx context.Context, path string, read bool) (*Report, error) {
	kind, err := Kind(path)
	if err != nil {
		return nil, err
	}
	l := &looker{ctx: ctx, read: read, Report: &Report{Path: path, Kind: kind}}
	for _, k := range kinds {
		if k.name == kind {
			if err := k.look(l, path); err != nil {
				return nil, err
			}
		}
	}
	l.Damaged = l.damaged()
	return l.Report, nil
}

// looker looks at one path.
type looker struct {
	ctx  context.Context
	read bool
	*Report
}

// fact notes what is said, where anything is.
func (l *looker) fact(what, is string) {
	if is != "" {
		l.Facts = append(l.Facts, Fact{what, is})
	}
}

// add notes a file. check is called where files are read; summed says that it compares the file with a checksum.
func (l *looker) add(path string, f File, summed bool, check func() error) error {
	if f.Name == "" {
		f.Name = l.name(path)
	}
	st, err := os.Stat(path)
	if err == nil {
		f.Bytes = st.Size()
	}
	if !l.read {
		l.Files = append(l.Files, f)
		return nil
	}
	f.State = NoSum
	if summed {
		f.State = Whole
	}
	if err == nil && check != nil {
		err = check()
	}
	if l.ctx.Err() != nil {
		return l.ctx.Err()
	}
	if err != nil {
		f.State, f.Problem = Damaged, strings.ReplaceAll(err.Error(), path, filepath.Base(path))
	}
	l.Files = append(l.Files, f)
	return nil
}

// name is the name of a file below the path that is looked at.
func (l *looker) name(path string) string {
	if rel, err := filepath.Rel(l.Path, path); err == nil && rel != "." {
		return rel
	}
	return filepath.Base(path)
}

// there lists the files in a folder that match a pattern.
func there(dir, pattern string) []string {
	list, _ := filepath.Glob(filepath.Join(files.Literal(dir), pattern)) // only a bad pattern is an error
	return list
}
