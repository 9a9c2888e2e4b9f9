package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/search"
	"github.com/geoalign/geoalign/train/runlog"
)

func isIndex(path string) bool { return filepath.Ext(path) == filepath.Ext(search.Beside("")) }

func isFeatures(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".npy", ".npz", ".safetensors", ".pt", ".pth", ".parquet":
		return true
	}
	return false
}

// index looks at the file of an index, which is read in any case.
func (l *looker) index(path string) error {
	stats, err := search.Check(path)
	f := File{}
	if err == nil {
		f.Holds = fmt.Sprintf("%s of %d by %s in %d cells, recall@%d %.3f, of the rows %s",
			words.Count(stats.Rows, "row"), stats.Width, stats.Metric, stats.Cells, stats.K, stats.Recall,
			stats.Fingerprint)
	}
	if errors.Is(err, search.ErrVersion) { // which search builds anew, and of whose bytes the checksum still tells
		f.Holds, err = "an index of another version, which search builds anew", safetensors.CheckFile(l.ctx, path)
	}
	if !l.read && err != nil {
		return err
	}
	return l.add(path, f, true, func() error { return err })
}

// features looks at a file of features, or another one of tensors.
func (l *looker) features(path string) error {
	d, err := features.Describe(l.ctx, path, l.read)
	if !l.read && err != nil {
		return err
	}
	return l.add(path, File{Holds: d.Holds}, d.Summed, func() error { return err })
}

// text looks at a file whose form is known by its name: JSON, its lines, TOML, metrics; others are only there.
func (l *looker) text(path string) error {
	return l.add(path, File{}, false, func() error {
		if filepath.Base(path) == runlog.MetricsFile {
			_, err := runlog.ReadMetrics(path)
			return err
		}
		ext := filepath.Ext(path)
		if ext != ".json" && ext != ".toml" {
			return nil
		}
		b, err := files.Read(path, 0)
		if err != nil {
			return err
		}
		if ext == ".toml" {
			return toml.Unmarshal(b, &map[string]any{})
		}
		if !json.Valid(b) {
			return errors.New("it is not JSON")
		}
		return nil
	})
}

// cached looks at a file of a cache folder.
func (l *looker) cached(path string) error {
	return l.add(path, File{Holds: data.CacheFile(path)}, true, func() error {
		b, err := files.Read(path, 0)
		if err != nil {
			return err
		}
		return data.CheckCacheFile(path, b)
	})
}
