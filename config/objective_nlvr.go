package config

import "github.com/geoalign/geoalign/encoders"

// NLVRKind is the data.kind and the task of statements about two pictures.
const NLVRKind = "nlvr"

// NLVR is fine-tuning on statements about two pictures (data.kind = "nlvr"; Li et al. 2021, section 5; NLVR2, Suhr et al. 2019): is
// the statement true? Each fusion layer is two, of which the first attends to one picture and the second to the other, with
// the same keys and values.
type NLVR struct {
	Weight float64 `toml:"weight" max:"1000000"` // of the loss in the total; 0: off
}

func (*NLVR) defaults() {}

func (n *NLVR) check(k *checker, c *Config) {
	const path = "objective.nlvr.weight"
	k.twoPictures(path, n.Weight, c)
	k.Require(path, n.Weight == 0 || !c.Objective.Captioning.recurs(), "must be 0 with objective.captioning.weight > 0", "a caption is of one picture")
}

// Assignment is pre-training for objective.nlvr on images with captions (Li et al. 2021, section 5, "text assignment"): of which
// of two images is the caption, or of none? Fusion layers are those of objective.nlvr, which can start from the checkpoint.
type Assignment struct {
	Weight float64 `toml:"weight" max:"1000000"` // of the loss in the total; 0: off
}

func (*Assignment) defaults() {}

func (a *Assignment) check(k *checker, c *Config) {
	k.twoPictures("objective.assignment.weight", a.Weight, c)
	k.Training("train.batch_size", a.Weight == 0 || c.Train.BatchSize > 2, "must be at least 3 with objective.assignment", "a caption is shown with two other images of the batch")
}

// twoPictures checks the weight of a loss whose fusion layers read two pictures of a text.
func (k *checker) twoPictures(path string, weight float64, c *Config) {
	k.NotNegative(path)
	k.Require(path, weight == 0 || c.Model.Image.Style != encoders.StyleRegions, `must be 0 with model.image.style = "regions"`, "two pictures of a text are pixels")
}

// Pictures is the number of pictures of a text in the fusion layers, 1 or 2.
func (c Config) Pictures() int {
	if c.Objective.NLVR.Weight > 0 || c.Objective.Assignment.Weight > 0 {
		return 2
	}
	return 1
}
