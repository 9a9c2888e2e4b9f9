package config

import (
	"fmt"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/objectives/scoring"
)

// Advice returns what is legal but probably not wanted, one sentence each.
func (c *Config) Advice() []string {
	c = c.settled()
	if c.Has(section.Fitted) {
		return c.notRead()
	}
	var list []string
	o, v := c.Objective, c.View()
	contrast, queue := o.ITC.Weight > 0, c.Has(section.PastFeatures)
	if contrast && c.Has(section.Momentum) && c.Init.Random() && o.ITC.InBatchWeight == 0 &&
		len(c.on(section.PairScores)) == 1 {
		list = append(list, "objective.itc.in_batch_weight is 0 and all parameters start from random numbers: contrast against a young teacher alone hardly starts from random weights; set objective.itc.in_batch_weight = 1")
	}
	if queue && c.Init.Random() && c.Queue.Size > 0 && c.Queue.StartSteps == 0 {
		list = append(list, "queue.start_steps is 0 and all parameters start from random numbers: queue negatives of an untrained teacher slow the start; set queue.start_steps to some hundred steps")
	}
	if c.Has(section.Adapters) && c.Init.Random() {
		list = append(list, "init.checkpoint is empty and model.lora.rank > 0: towers keep their random weights; set init.checkpoint to what is adapted")
	} else if c.Has(section.Tuned) && c.Init.Random() {
		list = append(list, "init.checkpoint is empty and "+c.Model.Tuning.Methods()[0]+
			" is set: towers keep their random weights; set init.checkpoint, init.image.path or init.text.path to what is tuned")
	}
	if c.Train.MaxSteps > 0 && c.Schedule.WarmupSteps >= c.Train.MaxSteps {
		list = append(list, fmt.Sprintf(
			"schedule.warmup_steps (%d) is not shorter than train.max_steps (%d): the learning rate never comes down",
			c.Schedule.WarmupSteps, c.Train.MaxSteps))
	}
	if d := c.Data; d.Kind == "scenes" && !c.Has(section.ImagesAlone) && c.Has(section.Images) &&
		(d.Flip || d.CropScaleMin < 1 || d.RandAugmentOps > 0 || d.ColorJitter > 0 || d.Grayscale > 0) {
		list = append(list, "data.kind is scenes and images are augmented: a flip, a crop or a colour operation makes captions about places, objects and colours wrong; set data.flip = false, data.crop_scale_min = 1, data.randaugment_ops = 0, data.color_jitter = 0 and data.grayscale = 0")
	}
	if t := c.Train; c.Has(section.Graph) && t.MaxSteps > 0 &&
		(t.MaxSteps-1)*t.BatchSize*max(1, t.AccumulateSteps) < c.Queue.Size {
		list = append(list, fmt.Sprintf(
			"the run ends before the queue of %d entries is full: until then a geodesic is the cosine and no graph is built; lower queue.size or train longer", c.Queue.Size))
	}
	if !contrast && objectives.ScoreTerms(v).Has(scoring.Geodesic) {
		list = append(list, "objective.itc.weight is 0: the geodesic of the score is left out, as the contrast within the batch has no queue; set objective.itc.weight > 0 or take it out of the scores")
	}
	if c.Init.Random() && objectives.NegativeTerms(v).Has(scoring.GSSF) &&
		!(c.Has(section.PairScores) && objectives.ScoreTerms(v).Has(scoring.GSSF)) {
		list = append(list, `objective.itm.negatives is "gssf" and no contrast has that score: nothing trains its metric, and negatives are drawn by the one that it starts from; set objective.itc.score = "gssf" too, or leave objective.itm.negatives out`)
	}
	if c.Queue.Size > 0 && !queue && !c.Has(section.BackboneQueue) {
		list = append(list, "queue.size is > 0 but objective.itc.weight and objective.adcl.weight are 0: nothing reads the queue")
	}
	list = append(list, c.notRead()...)
	if c.Data.Kind == "captions" && len(c.Data.Captions.Split(c.Eval.Split)) == 0 {
		list = append(list, "data.captions."+c.Eval.Split+"_files is empty: there is nothing to evaluate on")
	}
	return list
}
