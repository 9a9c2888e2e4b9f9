package verify

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run/ablate"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

// has reports whether a folder has a file that matches one of the patterns.
func has(dir string, patterns ...string) bool {
	for _, p := range patterns {
		if len(there(dir, p)) > 0 {
			return true
		}
	}
	return false
}

func isRun(path string, folder bool) bool {
	return folder && (has(path, runlog.CheckpointsDir) || has(path, "step-*") || has(path, runlog.MetricsFile))
}

func isGallery(path string, folder bool) bool {
	if !folder {
		return false
	}
	if has(path, gallery.FeaturesFile, "images-00000.jsonl", "texts-00000.jsonl") {
		return true // its index.json may be gone
	}
	_, err := gallery.ReadManifest(path)
	return err == nil
}

func isExport(path string, folder bool) bool {
	return folder && has(path, "*.safetensors", "*.onnx")
}

func isAblation(path string, folder bool) bool {
	return folder && has(path, ablate.ResultsFile, "*/seed-*/"+ablate.RecordFile)
}

// Files of a cache folder.
var cacheFiles = []string{"shard-*.index", "[0-9a-f][0-9a-f]/*.rgb", "neighbours-*.safetensors", "features-*.npy"}

func isCache(path string, folder bool) bool { return folder && has(path, cacheFiles...) }

// checkpoints looks at all checkpoints at a path.
func (l *looker) checkpoints(path string) error {
	if !l.read {
		return nil
	}
	list, err := checkpoint.Verify(path)
	if err != nil {
		return err
	}
	l.Checkpoints = append(l.Checkpoints, list...)
	return nil
}

// run looks at a run folder: checkpoints, what says which is the newest, configuration, log, and galleries in it.
func (l *looker) run(dir string) error {
	if err := l.checkpoints(dir); err != nil && (!errors.Is(err, checkpoint.ErrNone) || !has(dir, runlog.MetricsFile)) {
		return err
	}
	steps := dir
	if has(dir, runlog.CheckpointsDir) {
		steps = filepath.Join(dir, runlog.CheckpointsDir)
	}
	if latest := filepath.Join(steps, checkpoint.LatestFile); has(steps, checkpoint.LatestFile) {
		summed, err := checkpoint.CheckLatest(steps)
		if err := l.add(latest, File{}, summed, func() error { return err }); err != nil {
			return err
		}
	}
	for _, pattern := range []string{"*.toml", "*.json", runlog.MetricsFile} {
		for _, path := range there(dir, pattern) {
			if err := l.text(path); err != nil {
				return err
			}
		}
	}
	for _, path := range there(dir, "*") {
		if isGallery(path, true) && !checkpoint.IsStep(path) {
			if err := l.gallery(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// ablation looks at the runs of an ablation and what was made of them.
func (l *looker) ablation(dir string) error {
	for _, name := range []string{ablate.ResultsFile, ablate.CSVFile} {
		if has(dir, name) {
			if err := l.text(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	runs := there(dir, "*/seed-*")
	l.fact("runs", fmt.Sprint(len(runs)))
	for _, path := range runs {
		if isRun(path, true) {
			if err := l.run(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// gallery looks at both kinds of galleries.
func (l *looker) gallery(dir string) error {
	if has(dir, gallery.ManifestFile) {
		if err := l.manifest(dir); err != nil {
			return err
		}
	}
	list, err := gallery.Checks(dir)
	if err != nil {
		return l.broken(dir, err)
	}
	damaged := false
	for i := range list {
		c := &list[i]
		if err := l.add(c.Path, File{Sum: c.Sum}, c.Sum != "", func() error { return c.Whole(l.ctx) }); err != nil {
			return err
		}
		damaged = damaged || l.Files[len(l.Files)-1].State == Damaged
	}
	for _, path := range there(dir, "*.search") {
		if err := l.index(path); err != nil {
			return err
		}
	}
	if damaged {
		return nil
	}
	g, err := gallery.Open(dir)
	if err != nil {
		return l.broken(dir, err)
	}
	var rows []string
	for _, side := range g.Sides() {
		rows = append(rows, words.Count(g.Alive(side), side))
	}
	if dir == l.Path {
		l.fact("rows", fmt.Sprintf("%s of %s", strings.Join(rows, " and "), words.Count(g.Dim(), "channel")))
		l.fact("model", g.Meta.Model)
		l.fact("step", fmt.Sprint(g.Meta.Step))
		l.fact("score", g.Meta.Score)
		l.fact("split", g.Meta.Split)
		l.fact("weights", g.Meta.Weights)
	}
	return g.Close()
}

// broken notes what is wrong with a folder as a whole.
func (l *looker) broken(dir string, err error) error {
	if !l.read {
		return err
	}
	if m, merr := gallery.ReadManifest(dir); merr == nil && !m.Complete {
		l.fact("complete", "no: the same embed goes on with it")
		return nil
	}
	for _, f := range l.Files {
		if f.State == Damaged {
			return nil // which says it
		}
	}
	return l.add(dir, File{Name: l.name(dir)}, true, func() error { return err })
}

// manifest looks at the index.json of a gallery.
func (l *looker) manifest(dir string) error {
	path := filepath.Join(dir, gallery.ManifestFile)
	m, err := gallery.ReadManifest(dir)
	if err != nil && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	f := File{}
	if err == nil {
		f.Sum, f.Holds = m.Checksum, words.Count(len(m.Shards), "shard")
	}
	return l.add(path, f, err != nil || m.Checksum != "", func() error { return err })
}

// export looks at the files of an export, tensors and what describes them.
func (l *looker) export(dir string) error {
	for _, path := range there(dir, "*") {
		look := l.text
		if filepath.Ext(path) == ".safetensors" {
			look = l.features
		}
		if st, err := os.Stat(path); err != nil || st.IsDir() {
			continue
		}
		if err := look(path); err != nil {
			return err
		}
	}
	return nil
}

// cache looks at what training keeps between runs.
func (l *looker) cache(dir string) error {
	for _, pattern := range cacheFiles {
		for _, path := range there(dir, pattern) {
			look := l.features
			if data.CacheFile(path) != "" {
				look = l.cached
			}
			if err := look(path); err != nil {
				return err
			}
		}
	}
	return nil
}
