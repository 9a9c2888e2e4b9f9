package source

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/neighbours"
)

// Pairs names the stored features of data.kind = "pairs" and says which rows belong together.
// Paths start from data.root.
type Pairs struct {
	// file of the image features, a matrix with a row per image: .npy, .npz, .safetensors, .pt, .parquet, or a folder
	// of .pt files of a row or rows each; the last two are copied to data.cache_dir
	Image string `toml:"image"`
	// file of the text features, a row per text
	Text string `toml:"text"`
	// name of the tensor, or column, of the image features in their file; empty: its only one
	ImageTensor string `toml:"image_tensor"`
	// likewise of the text features
	TextTensor string `toml:"text_tensor"`
	// file of further image features of the same width, none of which is in a pair; empty: none
	ImagePool string `toml:"image_pool"`
	// likewise of text features
	TextPool string `toml:"text_pool"`
	// table of the pairs: .tsv or .csv with the columns image_row, text_row and, if wanted, split, or .npy of <i4 or
	// <i8 (pairs, 2); empty: row i of one file belongs to row i of the other
	Index string `toml:"index"`
	// images of the validation split, unless data.pairs.index names the splits
	ValSamples int `toml:"val_samples" max:"1000000000"`
	// images of the test split, likewise
	TestSamples int `toml:"test_samples" max:"1000000000"`
	// images of these splits: random (drawn by seed) | last (those in the last rows: test the end, val before them)
	Hold string `toml:"hold"`
	// draws the splits with hold = "random"; 0: run.seed
	Seed uint64 `toml:"seed" max:"9223372036854775807"`
	// training pairs that may be used as pairs, drawn by run.seed; the other rows of training are unpaired; 0: all
	Paired int `toml:"paired" max:"1000000000"`
}

// Defaults implements section.Defaulter.
func (p *Pairs) Defaults() { *p = Pairs{ValSamples: 1000, TestSamples: 1000, Hold: "random"} }

// Check implements section.Checked.
func (p *Pairs) Check(k *section.Checker) {
	k.NotNegative("data.pairs.val_samples", "data.pairs.test_samples", "data.pairs.paired")
	k.OneOf("data.pairs.hold", "random", "last")
	if section.Of[Data](k).Kind != "pairs" {
		return
	}
	k.Require("data.kind", k.Has(section.Stored), `must not be "pairs"`,
		k.Named()+" reads images: stored features are for model.system \"heads\" and \"align\"")
	for _, side := range []struct{ name, file, pool, tensor string }{{"image", p.Image, p.ImagePool, p.ImageTensor},
		{"text", p.Text, p.TextPool, p.TextTensor}} {
		path := "data.pairs." + side.name
		k.Require(path, side.file != "", `must name a file of features for data.kind "pairs"`)
		for _, x := range []struct{ path, file string }{{path, side.file}, {path + "_pool", side.pool}} {
			k.Require(x.path, x.file == "" || holdsFeatures(x.file),
				"must end in .npy, .npz, .safetensors, .pt, .pth or .parquet",
				"or name a folder of .pt files; one whose name has a dot needs a / at its end")
			k.Require("data.cache_dir", section.Of[Data](k).CacheDir != "" || x.file == "" || !holdsFeatures(x.file) ||
				!copied(x.file), "must name a folder for a copy of "+x.path,
				"which is converted once: only files of .npy, .npz, .safetensors and .pt are read in place")
		}
		k.Require(path+"_tensor", side.tensor == "" || strings.ToLower(filepath.Ext(side.file)) != ".npy",
			"must be empty for a .npy file", "which holds one array")
	}
	ext := strings.ToLower(filepath.Ext(p.Index))
	k.Require("data.pairs.index", p.Index == "" || slices.Contains([]string{".tsv", ".csv", ".npy"}, ext),
		"must end in .tsv, .csv or .npy")
	mayName := p.Index != "" && ext != ".npy" // the splits
	if !mayName && k.Number("train.eval_every_steps") > 0 && (evaluated(k) == "val" || evaluated(k) == "test") {
		path := "data.pairs." + evaluated(k) + "_samples"
		k.Training(path, k.Number(path) > 0, "must be > 0", "or set eval.split or train.eval_every_steps = 0")
	}
}

// featureFiles are the ends of names of files of features.
var featureFiles = []string{".npy", ".npz", ".safetensors", ".pt", ".pth", ".parquet"}

// holdsFeatures says whether a name is that of a file or folder of features.
func holdsFeatures(file string) bool {
	return FeatureFolder(file) || slices.Contains(featureFiles, strings.ToLower(filepath.Ext(file)))
}

// copied says whether features are read by way of a copy.
func copied(file string) bool {
	return FeatureFolder(file) || strings.EqualFold(filepath.Ext(file), ".parquet")
}

// FeatureFolder says whether a path of [data.pairs] names a folder: its name has no end such as .npy, or
// a slash behind.
func FeatureFolder(path string) bool {
	return path != "" && (filepath.Ext(path) == "" || strings.HasSuffix(path, "/"))
}

// storedPairs is data.kind = "pairs": files of stored features, rows in step. Streams and galleries of them
// have a method Close.
var storedPairs = Kind{
	Splits: func(cfg Setup) []string {
		if names, ok := indexSplits(cfg); ok {
			return names
		}
		list := []string{"train"}
		if cfg.Data.Pairs.ValSamples > 0 {
			list = append(list, "val")
		}
		if cfg.Data.Pairs.TestSamples > 0 {
			list = append(list, "test")
		}
		return list
	},
	MayLack: true,
	Inputs: func(cfg Setup, _ string) []Input {
		p := cfg.Data.Pairs
		var list []Input
		for _, x := range []struct{ key, file string }{{"image", p.Image}, {"text", p.Text},
			{"image_pool", p.ImagePool}, {"text_pool", p.TextPool}, {"index", p.Index}} {
			switch {
			case x.file == "":
			case x.key == "index":
				list = append(list, Under(cfg, "data.pairs."+x.key, x.file, false)...)
			default:
				list = append(list, content(cfg, "data.pairs."+x.key, x.file, FeatureFolder(x.file))...)
			}
		}
		return list
	},
	Entries: func(_ context.Context, cfg Setup, split string, _ Options) (any, error) {
		if split == "train" { // without neighbours
			return OpenPairs(cfg)
		}
		p, err := OpenPairs(cfg)
		if err != nil {
			return nil, err
		}
		return p.Set(split, 0)
	},
	Stream: func(ctx context.Context, cfg Setup, o Options) (data.Stream, error) {
		p, err := OpenPairs(cfg)
		if err != nil {
			return nil, err
		}
		c := features.StreamConfig{PerCaption: o.PerCaption}
		if err := addNeighbours(ctx, &c, p, cfg, o); err != nil {
			return nil, errors.Join(err, p.Close())
		}
		return p.Stream(c), nil
	},
	Galleries: func(_ context.Context, cfg Setup, split string, _ Options) (data.Galleries, error) {
		p, err := OpenPairs(cfg)
		if err != nil {
			return nil, err
		}
		set, err := p.Set(split, cfg.MaxImages)
		if err != nil {
			return nil, err
		}
		return set, nil
	},
}

// indexSplits returns the splits that the table of the pairs names, and whether it does. Of a
// table that cannot be read who opens it says what is wrong.
func indexSplits(cfg Setup) ([]string, bool) {
	if cfg.Data.Pairs.Index == "" {
		return nil, false
	}
	names, ok, err := features.IndexSplits(Below(cfg.Data.Root, cfg.Data.Pairs.Index))
	return names, ok && err == nil
}

// DrawsSplits says whether the splits of stored features are drawn: no table of their pairs names
// them.
func DrawsSplits(cfg Setup) bool {
	_, named := indexSplits(cfg)
	return !named
}

// OpenPairs opens the stored features of a configuration. Close them after use.
func OpenPairs(cfg Setup) (*features.Pairs, error) {
	p, err := features.Open(pairsConfig(cfg), cfg.Seed)
	return p, RootHint(err, cfg.Data.Root)
}

// Convert makes the copies of features that must be converted before they are read, where there are
// none yet; of other data it does nothing. Without it they are made when the data is first opened, without a
// word. progress is told how much of a phase is done, and may be nil. It ends early with the error of ctx.
func Convert(ctx context.Context, cfg Setup, progress func(phase string, done, of int)) error {
	if cfg.Data.Kind != "pairs" {
		return nil
	}
	if progress == nil {
		progress = func(string, int, int) {}
	}
	err := pairsConfig(cfg).Convert(ctx,
		func(path string, done, of int) { progress("converting "+filepath.Base(path), done, of) })
	return RootHint(err, cfg.Data.Root)
}

// pairsConfig is the part of a configuration that package features reads.
func pairsConfig(cfg Setup) features.PairsConfig {
	d := cfg.Data
	given := func(path string) string {
		if path == "" {
			return ""
		}
		return Below(d.Root, path)
	}
	return features.PairsConfig{
		ImagePool:   given(d.Pairs.ImagePool),
		TextPool:    given(d.Pairs.TextPool),
		Index:       given(d.Pairs.Index),
		Image:       Below(d.Root, d.Pairs.Image),
		Text:        Below(d.Root, d.Pairs.Text),
		ImageTensor: d.Pairs.ImageTensor,
		TextTensor:  d.Pairs.TextTensor,
		Cache:       d.CacheDir,
		Center:      cfg.Center,
		Division: features.Division{
			ValSamples:  d.Pairs.ValSamples,
			TestSamples: d.Pairs.TestSamples,
			Hold:        features.Hold(d.Pairs.Hold),
			Seed:        d.Pairs.Seed,
			Paired:      d.Pairs.Paired,
		},
	}
}

// addNeighbours finds what the geometric term of alignment heads compares with.
func addNeighbours(ctx context.Context, c *features.StreamConfig, p *features.Pairs, cfg Setup, o Options) error {
	k := cfg.Neighbours.Config
	how := neighbours.Options{Engine: o.Engine, Seed: cfg.Seed, Cache: cfg.Data.CacheDir, Progress: o.Progress,
		Note: o.Warn}
	if cfg.Neighbours.Image {
		lists, err := neighbours.Images(ctx, p, k, how)
		if err != nil {
			return err
		}
		c.ImageNeighbours = lists
	}
	if cfg.Neighbours.Text {
		lists, err := neighbours.Texts(ctx, p, k, how)
		if err != nil {
			return err
		}
		c.TextNeighbours = lists
	}
	return nil
}

func (*Pairs) kind() Kind { return storedPairs }
