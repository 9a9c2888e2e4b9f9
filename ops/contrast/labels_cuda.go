package contrast

import (
	_ "embed"
	"math"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

//go:embed labels.cu
var labelsText string

var labelsSource = source("labels", labelsText)

// Steps of the ops of labels and indices, and of means over rows that count.
var (
	keptMeanOnCUDA = launches(&labelsSource, "kept_mean", oneBlock, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[0], c.InAux[0][ceWeight], c.In[0].Shape[0]}
	})
	keptMeanGradOnCUDA = launches(&labelsSource, "kept_mean_dx", oneBlock, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[1], c.InAux[0][ceWeight], c.In[0].Shape[0]}
	})
	labelShareOnCUDA = launches(&labelsSource, "label_share", oneBlock, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[0], c.In[1], c.In[0].Shape[0], c.In[1].Shape[0]}
	})
	negativeLabelsOnCUDA = launches(&labelsSource, "negative_labels", eachElement, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[0], nil, c.In[0].Shape[0]}
	})
	negativeLabelsOfOnCUDA = launches(&labelsSource, "negative_labels", eachElement, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[0], c.In[1], c.In[0].Shape[0]}
	})
	lookUpColumnsOnCUDA = launches(&labelsSource, "look_up_columns", eachElement, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[0], c.In[1], c.In[1].Shape[0], c.In[0].Shape[0]}
	})
	assignmentLabelsOnCUDA = launches(&labelsSource, "assignment_labels", eachElement, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[0], c.In[1], c.In[1].Shape[0], AssignedNone}
	})
)

func assignedPicturesOnCUDA(picture int) steps {
	return launches(&labelsSource, "assigned_pictures", eachElement, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.In[0], c.In[1], c.In[1].Shape[0], picture, AssignedNone}
	})
}

func relabelOnCUDA(above, below float64) steps {
	return launches(&labelsSource, "relabel", oneBlock, func(c *exec.DeviceCall) []any {
		return []any{c.Out, c.Aux[0], c.Aux[1], c.Aux[2], c.Aux[3], c.In[0], c.In[1], c.In[2], c.In[0].Shape[0],
			math.Float64bits(above), math.Float64bits(below)}
	})
}

// accuracyOnCUDA finds each row's hit, then their share.
func accuracyOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	rows, cols := c.In[0].Shape[0], c.In[0].Shape[1]
	hit, err := cuda.Scratch(c, 4*int64(rows))
	if err != nil {
		return nil, err
	}
	hits, share := cuda.Load(c, &labelsSource, "hits"), cuda.Load(c, &labelsSource, "hit_share")
	return func() error {
		if err := hits.Launch(cuda.Grid{X: rows, Threads: powerOfTwo(cols/8, 32, 512)}, hit, c.In[0], c.In[1], cols); err != nil {
			return err
		}
		return share.Launch(cuda.Grid{Threads: 1024}, c.Out, hit, rows)
	}, nil
}
