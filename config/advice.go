package config

import (
	"fmt"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/objectives/scoring"
)

// Advice returns what is legal but probably not wanted, one sentence each.
func (c *Config) Advice() (list []string) {
	c = c.settled()
	if c.Has(section.Fitted) {
		return c.notRead()
	}
	note := func(is bool, format string, args ...any) {
		if is {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	o, d, t, v, random := &c.Objective, &c.Data, &c.Train, c.View(), c.Init.Random()
	contrast, queue := o.ITC.Weight > 0, c.Has(section.PastFeatures)
	note(contrast && c.Has(section.Momentum) && random && o.ITC.InBatchWeight == 0 &&
		len(c.on(section.PairScores)) == 1,
		"objective.itc.in_batch_weight is 0 and all parameters start from random numbers: contrast against a young teacher alone hardly starts from random weights; set objective.itc.in_batch_weight = 1")
	note(queue && random && c.Queue.Size > 0 && c.Queue.StartSteps == 0,
		"queue.start_steps is 0 and all parameters start from random numbers: queue negatives of an untrained teacher slow the start; set queue.start_steps to some hundred steps")
	m := c.sphereSum()
	note(c.Has(section.Temperature) && m > 1 && o.ITC.Temperature <= m/100,
		"objective.itc.temperature (%[1]g) is one for a single cosine, and the score sums the %[2]g of model.head.topology: the scale of the logits starts at clip-mtob's cap of 100/%[2]g or above; set objective.itc.temperature = %[3]g, %[2]g times as high",
		o.ITC.Temperature, m, m*o.ITC.Temperature)
	note(c.Has(section.Adapters) && random,
		"init.checkpoint is empty and model.lora.rank > 0: towers keep their random weights; set init.checkpoint to what is adapted")
	if c.Has(section.Tuned) && !c.Has(section.Adapters) && random {
		note(true, "init.checkpoint is empty and %s is set: towers keep their random weights; set init.checkpoint, init.image.path or init.text.path to what is tuned", c.Model.Tuning.Methods()[0])
	}
	note(t.MaxSteps > 0 && c.Schedule.WarmupSteps >= t.MaxSteps,
		"schedule.warmup_steps (%d) is not shorter than train.max_steps (%d): the learning rate never comes down",
		c.Schedule.WarmupSteps, t.MaxSteps)
	note(d.Kind == "scenes" && !c.Has(section.ImagesAlone) && c.Has(section.Images) &&
		(d.Flip || d.CropScaleMin < 1 || d.RandAugmentOps > 0 || d.ColorJitter > 0 || d.Grayscale > 0),
		"data.kind is scenes and images are augmented: a flip, a crop or a colour operation makes captions about places, objects and colours wrong; set data.flip = false, data.crop_scale_min = 1, data.randaugment_ops = 0, data.color_jitter = 0 and data.grayscale = 0")
	note(c.Has(section.Graph) && t.MaxSteps > 0 &&
		(t.MaxSteps-1)*t.BatchSize*max(1, t.AccumulateSteps) < c.Queue.Size,
		"the run ends before the queue of %d entries is full: until then a geodesic is the cosine and no graph is built; lower queue.size or train longer", c.Queue.Size)
	note(!contrast && objectives.ScoreTerms(v).Has(scoring.Geodesic),
		"objective.itc.weight is 0: the geodesic of the score is left out, as the contrast within the batch has no queue; set objective.itc.weight > 0 or take it out of the scores")
	note(random && objectives.NegativeTerms(v).Has(scoring.GSSF) &&
		!(c.Has(section.PairScores) && objectives.ScoreTerms(v).Has(scoring.GSSF)),
		`objective.itm.negatives is "gssf" and no contrast has that score: nothing trains its metric, and negatives are drawn by the one that it starts from; set objective.itc.score = "gssf" too, or leave objective.itm.negatives out`)
	note(c.Queue.Size > 0 && !queue && !c.Has(section.BackboneQueue),
		"queue.size is > 0 but objective.itc.weight and objective.adcl.weight are 0: nothing reads the queue")
	list = append(list, c.notRead()...)
	note(d.Kind == "captions" && len(d.Captions.Split(c.Eval.Split)) == 0,
		"data.captions.%s_files is empty: there is nothing to evaluate on", c.Eval.Split)
	return list
}
