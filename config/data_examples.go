package config

import "fmt"

// Examples names the samples of a downstream task, of which data.kind says the form ([tasks.md](tasks.md)).
type Examples struct {
	Source     string   `toml:"source"`                           // files | scenes (about the built-in pictures of [data.scenes], with answers that are known exactly)
	TrainFiles []string `toml:"train_files" read:"example files"` // training files: names, ranges such as part-{00..09}.json, or patterns such as train*.json
	ValFiles   []string `toml:"val_files" read:"example files"`   // validation files
	TestFiles  []string `toml:"test_files" read:"example files"`  // test files
	ImageRoot  string   `toml:"image_root" read:"example files"`  // folder of the pictures that files name; relative to data.root
}

// Values of data.examples.source.
const (
	ExamplesOfFiles  = "files"
	ExamplesOfScenes = "scenes"
)

func (e *Examples) defaults() { *e = Examples{Source: ExamplesOfFiles} }

func (e *Examples) check(k *checker, c *Config) {
	k.OneOf("data.examples.source", ExamplesOfFiles, ExamplesOfScenes)
	if c.Data.ReadsExamples() && e.Source == ExamplesOfFiles {
		k.Training("data.examples.train_files", len(e.TrainFiles) > 0, fmt.Sprintf(`must name at least one file for data.kind %q`, c.Data.Kind), `or set data.examples.source = "scenes"`)
	}
	if c.Data.ReadsExamples() {
		k.Require("data.kind", c.Model.traits().captions && !c.Model.traits().stored, fmt.Sprintf("must not be %q", c.Data.Kind), c.Model.named()+" has no images with texts")
	}
}

// Split returns the files of a split: train, val or test.
func (e Examples) Split(name string) []string {
	return filesOf(name, e.TrainFiles, e.ValFiles, e.TestFiles)
}
