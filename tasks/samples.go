package tasks

import (
	"math/rand/v2"
	"path/filepath"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/examples"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/internal/rng"
)

// Samples is how the samples of a downstream task are read, the data.kind of Task.Kind. A function that it does without is nil.
type Samples struct {
	// Pictures of a sample, 1 or 2.
	Pictures func(s Settings) int
	Classes  []string // names of the classes; nil: there are none, or the files name them
	// ByPicture says that the ids of training samples are those of their pictures.
	ByPicture bool
	// Files reads the samples of a split.
	Files func(s Settings, f SplitFiles, o examples.Options) (*data.FileExamples, error)
	// Scene makes a sample of a scene, by a generator that is the sample's own.
	Scene func(w *scenes.World, s scenes.Scene, d *SceneDraw) (data.Example, []scenes.Scene)
	// Drawn are the samples whose scenes are drawn; nil: these.
	Drawn func(s Settings) *Samples
	// Inputs are the files and folders beside those of data.examples, of files or of scenes.
	Inputs func(s Settings, drawn bool) []Input
	// Answers says how answers become columns.
	Answers func(s Settings) data.Answers
}

// One is a single picture.
func One(Settings) int { return 1 }

// Input is a file or a folder that a key names, from data.root; an empty name is none.
type Input struct {
	Key, Name string
	Folder    bool
}

// SplitFiles are the files of data.examples.
type SplitFiles struct {
	Root  string // data.root
	Split string // that is read
	Paths []string
	// Of returns the files of a split as they are named.
	Of func(split string) []string
}

// Below joins a path to the root, unless it is absolute or empty.
func (f SplitFiles) Below(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(f.Root, path)
}

// SceneDraw is what sample N of a split is drawn with.
type SceneDraw struct {
	Seed  uint64
	Split string
	N     uint64
	At    func(i uint64) scenes.Scene
}

// Rand is the generator of the sample.
func (d *SceneDraw) Rand() *rand.Rand { return rng.New(d.Seed, rng.Scenes+"/examples/"+d.Split, d.N) }
