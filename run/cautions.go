package run

import (
	"maps"
	"math"
	"path/filepath"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/eval/sanity"
	pages "github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/retrieval"
	"github.com/geoalign/geoalign/train/runlog"
)

// trainingCautions is LogCautions without those of evaluations.
func trainingCautions(dir string) []string {
	rows, err := runlog.ReadMetrics(filepath.Join(dir, runlog.MetricsFile))
	if err != nil {
		return nil
	}
	var losses []float64
	for _, row := range rows {
		if v, ok := row.Values["loss"]; ok {
			losses = append(losses, v)
		}
	}
	return tasks.NotEmpty(sanity.Loss(losses))
}

// LogCautions returns what the log of a run folder says of its training and of its last evaluation; nothing where there
// is not a log that can be read.
func LogCautions(dir string) []string {
	rows, err := runlog.ReadMetrics(filepath.Join(dir, runlog.MetricsFile))
	if err != nil {
		return nil
	}
	var losses []float64
	last := map[string]float64{}
	for _, row := range rows {
		if v, ok := row.Values["loss"]; ok {
			losses = append(losses, v)
		}
		maps.Copy(last, row.Values)
	}
	return append(tasks.NotEmpty(sanity.Loss(losses)), loggedCautions(last)...)
}

// curveCautions is LogCautions of curves that are read already.
func curveCautions(c *pages.Curves) []string {
	if c == nil {
		return nil
	}
	var losses []float64
	last := map[string]float64{}
	for name, points := range c.Values {
		for _, p := range points {
			if last[name] = p.Value; name == "loss" {
				losses = append(losses, p.Value)
			}
		}
	}
	return append(tasks.NotEmpty(sanity.Loss(losses)), loggedCautions(last)...)
}

// loggedCautions says of the last retrieval of a log that it is at chance. The log has no number of images: by chance
// the right one of n images is found first in 1/n of the searches, which is n, or less where a text has several.
func loggedCautions(last map[string]float64) []string {
	p := tasks.Logged(retrieval.Name, "")
	chance := func(name string) float64 { return last[p+eval.Random+"/"+name] }
	n := int(math.Round(100 / chance("t2i_r1")))
	if !(chance("t2i_r1") > 0) || n < 2 {
		return nil
	}
	direction := func(what, name string) string {
		var shares []sanity.Share
		for _, k := range []string{"r1", "r5", "r10"} {
			shares = append(shares, sanity.Share{Name: "R@" + k[1:], Value: last[p+name+"_"+k],
				Chance: chance(name + "_" + k), N: n})
		}
		return sanity.AtChance(what, shares...)
	}
	return tasks.NotEmpty(direction("image to text", "i2t"), direction("text to image", "t2i"))
}
