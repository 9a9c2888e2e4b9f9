package source

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/regions"
	"github.com/geoalign/geoalign/data/scenes"
)

// Regions names the files of data.kind = "regions": images as features of their regions, with captions. {split} in
// a name of a file stands for the name of the split; paths start from data.root.
type Regions struct {
	// files | scenes (the built-in pictures of [data.scenes], whose objects are the regions)
	Source string `toml:"source"`
	// name of the training split in names of files, {split}
	Train string `toml:"train" when:"source=files"`
	// likewise of the validation split; empty: none
	Val string `toml:"val" when:"source=files"`
	// likewise of the test split; empty: none
	Test string `toml:"test" when:"source=files"`
	// file of the features: .npy, .npz, .pt or .safetensors of an array (images, regions, features), .safetensors of a
	// tensor for each image, .tsv of bottom-up attention
	Features string `toml:"features" when:"source=files"`
	// name of the array in its file; empty: its only one, in .safetensors "features"
	Tensor string `toml:"tensor" when:"source=files"`
	// file of an array (images, regions, 4) of left, top, right, bottom as shares of the image; empty: none, or those
	// that the file of the features has
	Boxes string `toml:"boxes" when:"source=files"`
	// text file of the captions, one a line: as many as images or a whole multiple, those of an image together
	Captions string `toml:"captions" when:"source=files"`
	// text | words (a line is words with commas or blanks between them, as in precaps.txt)
	CaptionForm string `toml:"caption_form" when:"source=files"`
	// text file of the ids, one a line for each image or each caption, which is read if it is there: images of one id
	// are right answers for each other; empty: none
	IDs string `toml:"ids" when:"source=files"`
	// id_mapping.json: names of the files of images by id; empty: none
	Mapping string `toml:"mapping" when:"source=files"`
	// folder of these files, to show them; empty: none
	Pictures string `toml:"pictures" when:"source=files"`
	// where there are as many captions as images, every image is there five times, once for each caption: auto (by
	// ids, else by the first rows) | yes | no
	Repeated string `toml:"repeated" when:"source=files"`
	// captions of the validation split that are used, the first ones: 5000 as older programs do; 0: all
	ValCaptions int `toml:"val_captions" when:"source=files" max:"1000000"`
	// a learned vocabulary has the words of the captions of the validation split too, counted with those of training,
	// as that of the code of SCAN and of most hosts after it
	ValWords bool `toml:"val_words" when:"source=files and data.vocab="`
	// regions of an image that are read, the first ones; 0: as many as an image of any split has, a number that a run
	// with model.image.style "regions" writes down
	Most int `toml:"most" max:"65536"`
	// features of a region of a scene
	Width int `toml:"width" when:"source=scenes" max:"65536"`
	// standard deviation of the noise of these features, which are about 1
	Noise float64 `toml:"noise" when:"source=scenes" max:"1000"`
}

// Values of data.regions.source and caption_form.
const (
	RegionsOfFiles  = "files"
	RegionsOfScenes = "scenes"
	CaptionText     = "text"
	CaptionWords    = "words"
)

// Defaults implements section.Defaulter.
func (r *Regions) Defaults() {
	*r = Regions{
		Source: RegionsOfFiles, Train: "train", Val: "dev", Test: "test", Features: "{split}_ims.npy",
		Captions: "{split}_caps.txt", CaptionForm: CaptionText, IDs: "{split}_ids.txt", Repeated: "auto", Width: 64,
		Noise: 0.1,
	}
}

// Check implements section.Checked.
func (r *Regions) Check(k *section.Checker) {
	k.OneOf("data.regions.source", RegionsOfFiles, RegionsOfScenes)
	k.OneOf("data.regions.caption_form", CaptionText, CaptionWords)
	k.OneOf("data.regions.repeated", "auto", "yes", "no")
	k.NotNegative("data.regions.val_captions", "data.regions.most", "data.regions.noise")
	k.Positive("data.regions.width")
	if section.Of[Data](k).Kind != "regions" {
		return
	}
	k.Require("data.kind", !k.Has(section.Stored), `must not be "regions"`,
		k.Named()+` reads a row of features for each image: use "pairs"`)
	if r.Source != RegionsOfFiles {
		return
	}
	ext := strings.ToLower(filepath.Ext(r.Features))
	k.Require("data.regions.features", slices.Contains([]string{".npy", ".npz", ".pt", ".pth", ".safetensors", ".tsv"},
		ext), "must end in .npy, .npz, .pt, .pth, .safetensors or .tsv")
	k.Require("data.regions.boxes", r.Boxes == "" || ext != ".tsv", "must be empty for a .tsv file", "which has boxes")
	k.Require("data.regions.captions", r.Captions != "", "must name a file")
	k.Require("data.regions.tensor", r.Tensor == "" || ext != ".npy" && ext != ".tsv",
		"must be empty for a "+ext+" file", "which has no names")
	k.Require("data.regions.val_words", !r.ValWords || r.Val != "", "must be false without data.regions.val")
	k.Training("data.regions.train", r.Train != "", `must name the split for data.kind "regions"`)
	if k.Number("train.eval_every_steps") > 0 && (evaluated(k) == "val" || evaluated(k) == "test") {
		k.Training("data.regions."+evaluated(k), r.Split(evaluated(k)) != "", "must name the split",
			"or set eval.split or train.eval_every_steps = 0")
	}
}

// Split returns the name of a split (train, val or test) in names of files, empty for none.
func (r Regions) Split(name string) string { return filesOf(name, r.Train, r.Val, r.Test) }

// File puts the name of a split into the name of a file.
func (r Regions) File(file, split string) string {
	return strings.ReplaceAll(file, "{split}", r.Split(split))
}

// Drawn says whether the data is the built-in scenes, which are drawn and whose training split has no end.
func (d Data) Drawn() bool {
	return d.Kind == "scenes" || d.Kind == "regions" && d.Regions.Source == RegionsOfScenes || d.ReadsExamples() &&
		d.Examples.Source == ExamplesOfScenes
}

// regionSets is data.kind = "regions": features of the regions of images, of files or of the built-in scenes. Streams
// and splits of files have a method Close.
var regionSets = Kind{
	Splits: func(cfg Setup) []string {
		if cfg.Data.Drawn() {
			return scenesKind.Splits(cfg)
		}
		return having(func(d Data, split string) bool { return d.Regions.Split(split) != "" })(cfg)
	},
	MayLack: true,
	Inputs: func(cfg Setup, split string) (list []Input) {
		r := cfg.Data.Regions
		if cfg.Data.Drawn() || r.Split(split) == "" {
			return nil
		}
		for _, x := range []struct {
			key, file string
			folder    bool
			add       func(cfg Setup, key, value string, folder bool) []Input
		}{{"features", r.Features, false, content}, {"boxes", r.Boxes, false, content},
			{"captions", r.Captions, false, Under}, {"mapping", r.Mapping, false, Under},
			{"pictures", r.Pictures, true, Under}} {
			if x.file != "" {
				list = append(list, x.add(cfg, "data.regions."+x.key, r.File(x.file, split), x.folder)...)
			}
		}
		return list
	},
	Stream: func(_ context.Context, cfg Setup, o Options) (data.Stream, error) {
		if cfg.Data.Drawn() {
			s, err := sceneRegions(cfg)
			if err != nil {
				return nil, err
			}
			return s.Stream(cfg.Data.Scenes.EpochSamples, o.train(cfg))
		}
		set, err := openRegions(cfg, "train", o)
		if err != nil {
			return nil, err
		}
		return data.NewTrain(set, o.train(cfg))
	},
	Split: func(_ context.Context, cfg Setup, split string, o Options) (data.Dataset, error) {
		if cfg.Data.Drawn() {
			s, err := sceneRegions(cfg)
			if err != nil {
				return nil, err
			}
			return s.Split(split, cfg.ImageSize)
		}
		set, err := openRegions(cfg, split, o)
		if err != nil {
			return nil, err
		}
		return set, nil
	},
	Captions: func(ctx context.Context, cfg Setup, o Options) ([]string, error) {
		if cfg.Data.Drawn() {
			return scenesKind.Captions(ctx, cfg, o)
		}
		var out []string
		splits := []string{"train"}
		if cfg.Data.Regions.ValWords {
			splits = append(splits, "val")
		}
		for _, split := range splits {
			set, err := openRegions(cfg, split, o)
			if err != nil {
				return nil, err
			}
			defer set.Close()
			for i := range set.Len() {
				for _, c := range set.Captions(i) {
					out = append(out, data.Clean(cfg.Data.Clean, c, cfg.Data.MaxWords))
				}
			}
		}
		return out, nil
	},
}

// sceneRegions opens the regions of the built-in scenes.
func sceneRegions(cfg Setup) (*regions.Scenes, error) {
	w, err := World(cfg)
	if err != nil {
		return nil, err
	}
	r := cfg.Data.Regions
	return regions.NewScenes(w, regions.ScenesConfig{Width: r.Width, Noise: r.Noise, Most: r.Most, Seed: cfg.Seed}), nil
}

// openRegions opens a split of files.
func openRegions(cfg Setup, split string, o Options) (*regions.Set, error) {
	r := cfg.Data.Regions
	if r.Split(split) == "" {
		return nil, unnamed("data.regions."+split, "the split in the names of its files")
	}
	file := func(name string) string {
		if name == "" {
			return ""
		}
		return Below(cfg.Data.Root, r.File(name, split))
	}
	c := regions.Config{
		Features: file(r.Features), Tensor: r.Tensor, Boxes: file(r.Boxes), Captions: file(r.Captions),
		Words: r.CaptionForm == CaptionWords, IDs: file(r.IDs), Mapping: file(r.Mapping), Pictures: file(r.Pictures),
		Repeated: r.Repeated, Most: r.Most, Options: options(cfg, o, "reading captions"),
	}
	if split == "val" {
		c.MaxCaptions = r.ValCaptions
	}
	if c.Most == 0 {
		s, err := SizeOfRegions(cfg)
		if err != nil {
			return nil, RootHint(err, cfg.Data.Root)
		}
		c.Most = s.Most
	}
	set, err := regions.Load(c)
	return set, RootHint(err, cfg.Data.Root)
}

// RegionSizes are those of the regions of a configuration.
type RegionSizes struct {
	Most  int    // regions of an image: data.regions.most, or where it is 0 the most that an image of any split has
	Width int    // features of a region, 0 where no file is there
	Of    string // where these come from, a file or a key
}

// SizeOfRegions reads the sizes of regions from the splits whose files are there, which must have one width.
func SizeOfRegions(cfg Setup) (s RegionSizes, err error) {
	r := cfg.Data.Regions
	s.Most = r.Most
	if cfg.Data.Drawn() {
		if s.Most == 0 {
			s.Most = scenes.MaxObjects
		}
		s.Width, s.Of = r.Width, "data.regions.width"
		return s, nil
	}
	seen := map[string]bool{}
	for _, split := range Splits {
		path := Below(cfg.Data.Root, r.File(r.Features, split))
		if _, err := os.Stat(path); err != nil || r.Split(split) == "" || seen[path] {
			continue
		}
		seen[path] = true
		f, err := regions.OpenFeatures(path, r.Tensor, "")
		if err != nil {
			return s, err
		}
		if s.Of == "" {
			s.Of, s.Width = path, f.Width()
		}
		if f.Width() != s.Width {
			return s, fmt.Errorf("regions: %s has %d features for a region and %s %d: all splits must have one width",
				s.Of, s.Width, path, f.Width())
		}
		if r.Most == 0 {
			s.Most = max(s.Most, f.Most())
		}
		if err := f.Close(); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (*Regions) kind() Kind { return regionSets }
