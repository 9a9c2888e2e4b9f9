package config

// Queue holds past momentum features as negatives.
type Queue struct {
	Size       int `toml:"size" fixed:"run" max:"16777216"`           // entries per modality, at least train.batch_size; 0: no queue
	StartSteps int `toml:"start_steps" read:"queue" max:"1000000000"` // first step whose contrast (objective.itc, objective.adcl) reads the queue
}

func (q *Queue) defaults() { *q = Queue{Size: 65536} }

func (q *Queue) check(k *checker, c *Config) {
	k.NotNegative("queue.size", "queue.start_steps")
	k.Require("queue.size", q.Size == 0 || q.Size >= c.Train.BatchSize, "must be 0 or at least train.batch_size",
		"a batch would push out its own features: raise queue.size or lower train.batch_size")
	k.Require("queue.size", q.Size == 0 || q.Size >= c.ComparedRows(), "must be 0 or at least train.batch_size x train.accumulate_steps with train.accumulate = \"features\"",
		"the pairs of an update enter it together: raise queue.size or lower train.accumulate_steps")
	k.Require("queue.size", q.Size == 0 || !c.Model.ByIdentity() && !c.Model.Classifies() && !c.Model.TextsOnly(), "must be 0", c.Model.named()+" compares a batch with itself")
	k.Require("queue.size", q.Size == 0 || !c.lacksTeacher(), "must be 0 without momentum", needsTeacher)
}
