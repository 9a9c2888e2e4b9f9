// Package all lists the tasks that models are evaluated on and fine-tuned for. A new one is a line here.
package all

import (
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/captioning"
	"github.com/geoalign/geoalign/tasks/classes"
	"github.com/geoalign/geoalign/tasks/grounding"
	"github.com/geoalign/geoalign/tasks/migration"
	"github.com/geoalign/geoalign/tasks/multimodal"
	"github.com/geoalign/geoalign/tasks/probe"
	"github.com/geoalign/geoalign/tasks/reid"
	"github.com/geoalign/geoalign/tasks/retrieval"
	"github.com/geoalign/geoalign/tasks/sentencepairs"
	"github.com/geoalign/geoalign/tasks/sentences"
	"github.com/geoalign/geoalign/tasks/sentiment"
	"github.com/geoalign/geoalign/tasks/vqa"
	"github.com/geoalign/geoalign/tasks/zeroshot"
)

// List is the tasks in the order of help and messages. The first is that of a model for which no other is the default.
var List = []tasks.Task{
	retrieval.Task,
	probe.Task,
	probe.TextTask,
	sentences.Task,
	sentiment.Task,
	migration.NeighboursTask,
	zeroshot.Task,
	reid.Task,
	migration.Task,
	reid.Siblings,
	sentencepairs.Task,
	classes.Task,
	multimodal.Task,
	multimodal.Entailment,
	grounding.Task,
	multimodal.Assignment,
	multimodal.NLVR,
	vqa.Task,
	captioning.Task,
}

// Beside are the tasks that eval.beside can name.
func Beside() []string { return tasks.Names(List, func(t tasks.Task) bool { return t.Beside }) }
