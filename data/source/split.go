package source

import (
	"github.com/geoalign/geoalign/config/section"
)

// Division divides the training files of data.kind = "captions" or "csv" by a hash of each image's name, so that all
// captions of an image are in one split, whatever the order and the number of the entries.
type Division struct {
	// percent of the images of train_files that are the split val, which then has no files of its own; 0: none
	Val float64 `toml:"val"`
	// percent that are the split test; 0: none
	Test float64 `toml:"test"`
}

// Defaults implements section.Defaulter.
func (d *Division) Defaults() { *d = Division{} }

// Check implements section.Checked.
func (d *Division) Check(k *section.Checker) {
	k.Require("data.split.val", d.Val >= 0 && d.Val < 100, "must be at least 0 and below 100")
	k.Require("data.split.test", d.Test >= 0 && d.Test < 100, "must be at least 0 and below 100")
	k.Require("data.split.val", !(d.Val+d.Test >= 100), "must leave images for training",
		"data.split.val and data.split.test must sum up to less than 100")
	files := map[string]func(string) []string{"captions": section.Of[Data](k).Captions.Split,
		"csv": section.Of[Data](k).CSV.Split}[section.Of[Data](k).Kind]
	if files == nil {
		return
	}
	for _, split := range []string{"val", "test"} {
		k.Require("data.split."+split, d.Percent(split) == 0 || len(files(split)) == 0,
			"must be 0 where data."+section.Of[Data](k).Kind+"."+split+"_files names files", "leave one of them out")
	}
}

// Percent is the share of the training files that is a split.
func (d Division) Percent(split string) float64 {
	switch split {
	case "val":
		return d.Val
	case "test":
		return d.Test
	}
	return 0
}

// Divides says whether training files are divided.
func (d Division) Divides() bool { return d.Val > 0 || d.Test > 0 }

// files is Files for one kind of data.
func (d Division) files(of func(split string) []string) func(split string) []string {
	return func(split string) []string { return d.Files(split, of) }
}

// Files are those of a split, which for one that is a share of the training files are these.
func (d Division) Files(split string, of func(split string) []string) []string {
	if d.Percent(split) > 0 {
		return of("train")
	}
	return of(split)
}
