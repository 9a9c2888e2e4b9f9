package gallery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"

	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/internal/strictjson"
)

// Names of the files of a gallery.
const (
	ManifestFile = "index.json"           // of shards: what is said of them
	FeaturesFile = "features.safetensors" // of a split: all features
	ImagesFile   = "images.jsonl"         // of a split: a line per image
	TextsFile    = "texts.jsonl"          // of a split: a line per text
)

// Sides of a gallery.
const (
	Image = "image"
	Text  = "text"
)

// Meta says of what model the features are.
type Meta struct {
	Model     string `json:"model"`                // step folder of the checkpoint
	Step      int    `json:"step"`                 // of the run
	Score     string `json:"score,omitempty"`      // by which the model compares pairs; empty: images alone
	EvalScore string `json:"eval_score,omitempty"` // eval.score of the configuration
	Product   bool   `json:"product"`              // the score is the product of rows
	Alike     bool   `json:"alike,omitempty"`      // images are compared with images by it too, as in re-identification
	Space     string `json:"space,omitempty"`      // where features lie, as in model.head.topology
	LeadingOf int    `json:"leading_of,omitempty"` // channels of features, of which rows are the leading ones; 0: whole
	Split     string `json:"split,omitempty"`      // of a split: which
	Twin      bool   `json:"twin,omitempty"`       // the momentum encoder of the model made them
	Weights   string `json:"weights,omitempty"`    // checksums of the parameters; empty: not known
	// how texts became tokens, as settings with commas between; empty: no texts, or not known
	Reading string `json:"reading,omitempty"`
}

// Manifest is what the file index.json says of a gallery in shards.
type Manifest struct {
	Version int `json:"version"` // 1; 2 with a generation
	// of this text, see identity.Seal; empty: of a program that wrote none
	Checksum  string `json:"checksum,omitempty"`
	Side      string `json:"side"`           // image or text
	Source    string `json:"source"`         // what was encoded: images, texts or rows
	From      string `json:"from"`           // the file or folder
	Root      string `json:"root,omitempty"` // folder that the names of images start from
	Meta             // of the model
	Dim       int    `json:"dim"`        // C
	ShardRows int    `json:"shard_rows"` // most rows of a shard
	// of images: what decoded JPEG files, with commas between where it was not one alone; empty: not known
	Decoder   string `json:"decoder,omitempty"`
	MaxPixels int    `json:"max_pixels,omitempty"` // of images: data.max_pixels; 0: not known
	// how often the files of rows that a Writer changes were rewritten, from 1; 0: no Writer has changed any
	Generation int     `json:"generation,omitempty"`
	Complete   bool    `json:"complete"` // nothing of the source is missing
	Rows       int     `json:"rows"`     // N, of all shards
	LeftOut    int     `json:"left_out"` // inputs that could not be read
	Shards     []Shard `json:"shards"`
}

// Shard is a file of features with the file of their names.
type Shard struct {
	Features string `json:"features"`        // file, in the folder
	Names    string `json:"names,omitempty"` // file of a line per row; empty for rows of a file
	Rows     int    `json:"rows"`
	Inputs   int    `json:"inputs"` // that were read, with those left out
	// Sizes and checksums (CRC-32C, hexadecimal) by which a shard that was cut is found.
	FeaturesBytes int64  `json:"features_bytes"`
	FeaturesSum   string `json:"features_crc32c"`
	NamesBytes    int64  `json:"names_bytes,omitempty"`
	NamesSum      string `json:"names_crc32c,omitempty"`
	InputsSum     string `json:"inputs_crc32c"` // of what was encoded: lines, rows, or names, sizes and times of images
	// Of images what tells whether they are the same: the sum of names and stamps (package identity), where that proves
	// something, and that of names and all bytes. Empty: not known.
	InputsStamps   string `json:"inputs_stamps,omitempty"`
	InputsContents string `json:"inputs_contents,omitempty"`
}

// The versions of the file grow when it means something else. That of galleries with changes beside the shards is
// another one, so that no earlier program reads the shards alone.
const (
	manifestVersion = 1
	changedVersion  = 2
)

// maxManifest is the largest size of the file in bytes.
const maxManifest = 256 << 20

// ReadManifest reads the manifest of a folder. It wraps fs.ErrNotExist where there is none.
func ReadManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, ManifestFile)
	b, err := files.Read(path, maxManifest)
	if err != nil {
		return nil, fmt.Errorf("gallery: %w", err)
	}
	m, err := parseManifest(b)
	if err != nil {
		return nil, fmt.Errorf("gallery: %s: %w: embed the files again to another folder", path, err)
	}
	return m, nil
}

// parseManifest reads and checks a manifest.
func parseManifest(b []byte) (*Manifest, error) {
	var v struct{ Version int }
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, fmt.Errorf("it is not the JSON of a gallery: %w", err)
	}
	if v.Version != manifestVersion && v.Version != changedVersion {
		return nil, fmt.Errorf("it has version %d, and this program reads versions %d and %d", v.Version,
			manifestVersion, changedVersion)
	}
	if bytes.Contains(b, []byte(identity.SealKey)) {
		if err := identity.CheckSeal(b); err != nil {
			return nil, fmt.Errorf("%w (if you changed it on purpose, remove the line \"checksum\")", err)
		}
	}
	if err := strictjson.Check(b); err != nil {
		return nil, err
	}
	var m Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, err
	}
	return &m, m.check()
}

// check refuses what no embed writes.
func (m *Manifest) check() error {
	switch {
	case m.Side != Image && m.Side != Text:
		return fmt.Errorf("its side must be image or text (got %q)", m.Side)
	case m.Generation < 0 || m.Generation > maxGeneration || (m.Generation > 0) != (m.Version == changedVersion):
		return fmt.Errorf("it has version %d and generation %d", m.Version, m.Generation)
	case m.LeadingOf != 0 && m.LeadingOf <= m.Dim:
		return fmt.Errorf("its rows have %d leading channels of %d", m.Dim, m.LeadingOf)
	case m.Dim < 1 || m.Dim > math.MaxInt32:
		return fmt.Errorf("it has %d channels", m.Dim)
	}
	rows := 0
	for i, s := range m.Shards {
		for _, name := range []string{s.Features, s.Names} {
			if name != "" && (name != filepath.Base(name) || !filepath.IsLocal(name)) || s.Features == "" {
				return fmt.Errorf("shard %d has the file %q, which is not a name in the folder", i, name)
			}
		}
		if s.Rows < 0 || s.Inputs < s.Rows || s.Rows > math.MaxInt32-rows {
			return fmt.Errorf("shard %d has %d rows of %d inputs", i, s.Rows, s.Inputs)
		}
		rows += s.Rows
	}
	if rows != m.Rows {
		return fmt.Errorf("it has %d rows, its shards have %d", m.Rows, rows)
	}
	return nil
}

// Checks lists the files of a gallery in the folder dir with what the manifest says of their contents.
func (m *Manifest) Checks(dir string) (list []Check) {
	for _, s := range m.Shards {
		for _, f := range []Check{{Path: s.Features, Sum: s.FeaturesSum, Bytes: s.FeaturesBytes},
			{Path: s.Names, Sum: s.NamesSum, Bytes: s.NamesBytes}} {
			if f.Path != "" {
				f.Path, f.where, f.cure = filepath.Join(dir, f.Path), ManifestFile,
					"run the same embed again, which makes damaged shards anew"
				list = append(list, f)
			}
		}
	}
	return list
}

// Write replaces the manifest of a folder.
func (m *Manifest) Write(dir string) error {
	sealed := *m
	sealed.Checksum = identity.SealZero
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(sealed); err != nil {
		return err
	}
	if err := identity.Seal(b.Bytes()); err != nil {
		return err
	}
	return files.Replace(filepath.Join(dir, ManifestFile), b.Bytes())
}
