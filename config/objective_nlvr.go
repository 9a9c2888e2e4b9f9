package config

// NLVR is fine-tuning on statements about two pictures (Li et al. 2021, section 5, NLVR2): is the statement true?
type NLVR struct {
	Weight float64 `toml:"weight" max:"1000000"` // of the loss in the total; 0: off. A text then has two pictures: each fusion layer is two, of which the first attends to one picture and the second to the other with the same keys and values
}

func (*NLVR) defaults() {}

func (n *NLVR) check(k *checker, c *Config) { k.twoPictures("objective.nlvr.weight", n.Weight, c) }

// Assignment is pre-training for NLVR on images with captions (Li et al. 2021, section 5, "text assignment"): of which of two
// images is the caption?
type Assignment struct {
	Weight float64 `toml:"weight" max:"1000000"` // of the loss in the total; 0: off. Fusion layers are those of objective.nlvr, and a run of objective.nlvr can start from the checkpoint
}

func (*Assignment) defaults() {}

func (a *Assignment) check(k *checker, c *Config) {
	const path = "objective.assignment.weight"
	k.twoPictures(path, a.Weight, c)
	k.training("train.batch_size", a.Weight == 0 || c.Train.BatchSize > 2, "must be at least 3 with objective.assignment", "a caption is shown with two other images of the batch")
}

// twoPictures checks the weight of a loss whose fusion layers read two pictures of a text.
func (k *checker) twoPictures(path string, weight float64, c *Config) {
	k.notNegative(path)
	if weight == 0 {
		return
	}
	k.require(path, c.Model.traits().fusion, "must be 0", c.Model.named()+" has no fusion layers, which it reads")
	k.require(path, c.Objective.ITM.Weight == 0 && c.Objective.MLM.Weight == 0, "must be 0 with matching or masked language modelling",
		"these read one picture of a text: set objective.itm.weight and objective.mlm.weight = 0")
	k.require(path, c.Model.Image.Style != StyleRegions, `must be 0 with model.image.style = "regions"`, "two pictures of a text are pixels")
}

// readsTwoPictures says whether fusion layers read two pictures of a text.
func (o Objective) readsTwoPictures() bool { return o.NLVR.Weight > 0 || o.Assignment.Weight > 0 }

// Pictures is the number of pictures of a text in the fusion layers, 1 or 2.
func (c Config) Pictures() int {
	if c.Objective.readsTwoPictures() {
		return 2
	}
	return 1
}
