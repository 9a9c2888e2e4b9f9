package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var labelsSource = cuda.NewSource(files, "labels", "sums.cuh", "labels.cu")

// Steps of the ops of labels and indices, and of means over rows that count.
var (
	KeptMean = cuda.OnKernel(labelsSource, "kept_mean", oneBlock, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[0], c.InAux[0][ceWeight], c.In[0].Shape[0]}
	})
	KeptMeanGrad = cuda.OnKernel(labelsSource, "kept_mean_dx", oneBlock, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[1], c.InAux[0][ceWeight], c.In[0].Shape[0]}
	})
	LabelShare = cuda.OnKernel(labelsSource, "label_share", oneBlock, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[0], c.In[1], c.In[0].Shape[0], c.In[1].Shape[0]}
	})
	NegativeLabels = cuda.OnKernel(labelsSource, "negative_labels", eachElement, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[0], nil, c.In[0].Shape[0]}
	})
	NegativeLabelsOf = cuda.OnKernel(labelsSource, "negative_labels", eachElement, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[0], c.In[1], c.In[0].Shape[0]}
	})
	LookUpColumns = cuda.OnKernel(labelsSource, "look_up_columns", eachElement, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[0], c.In[1], c.In[1].Shape[0], c.In[0].Shape[0]}
	})
)

// AssignmentLabels is the step of the labels of assigned pairs, where none is the answer that stands for neither.
func AssignmentLabels(none int) cuda.Steps {
	return cuda.OnKernel(labelsSource, "assignment_labels", eachElement, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[0], c.In[1], c.In[1].Shape[0], none}
	})
}

// AssignedPictures is the step of the pictures that they have.
func AssignedPictures(picture, none int) cuda.Steps {
	return cuda.OnKernel(labelsSource, "assigned_pictures", eachElement, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[0], c.In[1], c.In[1].Shape[0], picture, none}
	})
}

// Relabel is the step of labels that change by scores.
func Relabel(above, below float64) cuda.Steps {
	return cuda.OnKernel(labelsSource, "relabel", oneBlock, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.Aux[0], c.Aux[1], c.Aux[2], c.Aux[3], c.In[0], c.In[1], c.In[2], c.In[0].Shape[0],
			cuda.Double(above), cuda.Double(below)}
	})
}

// Accuracy finds each row's hit, then their share.
func Accuracy() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, cols := c.In[0].Shape[0], c.In[0].Shape[1]
		hit := cuda.Scratch(c, 4*int64(rows))
		hits, share := cuda.Load(c, labelsSource, "hits"), cuda.Load(c, labelsSource, "hit_share")
		return func() {
			hits.Enqueue(cuda.Grid{X: rows, Threads: powerOfTwo(cols/8, 32, 512)}, hit, c.In[0], c.In[1], cols)
			share.Enqueue(cuda.Grid{Threads: 1024}, c.Out, hit, rows)
		}
	})
}
