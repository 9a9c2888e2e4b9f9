package run

import (
	"maps"
	"math"
	"path/filepath"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/eval/sanity"
	pages "github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/train/runlog"
)

// Cautious is implemented by scores that can say of themselves that they are no result.
type Cautious interface {
	// Cautions are sentences, none of which a working model gives: see package eval/sanity.
	Cautions() []string
}

// Cautions returns what scores say of themselves.
func Cautions(s Scores) []string {
	if c, ok := s.(Cautious); ok {
		return c.Cautions()
	}
	return nil
}

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
	return said(sanity.Loss(losses))
}

// LogCautions returns what the log of a run folder says of its training and of its last evaluation; nothing where there is no log
// that can be read.
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
	return append(said(sanity.Loss(losses)), loggedCautions(last)...)
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
	return append(said(sanity.Loss(losses)), loggedCautions(last)...)
}

// loggedCautions says of the last retrieval of a log that it is at chance. The log has no number of images: by chance the right one
// of n images is found first in 1/n of the searches, which is n, or less where a text has several.
func loggedCautions(last map[string]float64) []string {
	p := logPrefix(TaskRetrieval)
	chance := func(name string) float64 { return last[p+eval.Random+"/"+name] }
	n := int(math.Round(100 / chance("t2i_r1")))
	if !(chance("t2i_r1") > 0) || n < 2 {
		return nil
	}
	direction := func(what, name string) string {
		var shares []sanity.Share
		for _, k := range []string{"r1", "r5", "r10"} {
			shares = append(shares, sanity.Share{Name: "R@" + k[1:], Value: last[p+name+"_"+k], Chance: chance(name + "_" + k), N: n})
		}
		return sanity.AtChance(what, shares...)
	}
	return said(direction("image to text", "i2t"), direction("text to image", "t2i"))
}

// said are the sentences that are not empty.
func said(list ...string) (out []string) {
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// Cautions implements Cautious. Captions of one image are near each other: they count as one answer.
func (r Retrieval) Cautions() []string {
	m, n := r.Final(), r.Images
	direction := func(what string, got, chance eval.Direction) string {
		return sanity.AtChance(what, sanity.Share{Name: "R@1", Value: got.R1, Chance: chance.R1, N: n}, sanity.Share{Name: "R@5", Value: got.R5, Chance: chance.R5, N: n},
			sanity.Share{Name: "R@10", Value: got.R10, Chance: chance.R10, N: n})
	}
	return said(direction("image to text", m.I2T, r.Chance.I2T), direction("text to image", m.T2I, r.Chance.T2I),
		sanity.Few(sanity.Share{Name: "R@1 image to text", Value: m.I2T.R1, N: n}, "images"), sanity.Ties(r.WorstRMean, r.TiedRMean),
		sanity.Collapsed("images", r.MeanCosine[0], r.Images), sanity.Collapsed("texts", r.MeanCosine[1], r.Texts))
}

// accuracy is the cautions of n answers beside what guessing reaches, in percent.
func accuracy(value, chance float64, n int, of string) []string {
	s := sanity.Share{Name: "accuracy", Value: value, Chance: chance, N: n}
	return said(sanity.AtChance("the accuracy", s), sanity.Few(s, of))
}

// Cautions implements Cautious.
func (z ZeroShot) Cautions() []string { return accuracy(z.Top1, z.Chance1, z.Images, "images") }

// Cautions implements Cautious.
func (p Probe) Cautions() []string { return accuracy(p.Top1, p.Chance, p.Test, "samples") }

// Cautions implements Cautious: what is above chance is more than the commonest class gives.
func (s JudgedExamples) Cautions() []string {
	return accuracy(s.Accuracy, s.Majority, s.ClassifiedScores.Examples, "examples")
}

// Cautions implements Cautious.
func (r ReID) Cautions() []string {
	s := sanity.Share{Name: "R@1", Value: r.R1, Chance: r.ChanceR1, N: r.Queries}
	return said(sanity.AtChance("re-identification", s), sanity.Few(s, "queries"))
}

// Cautions implements Cautious: of neighbours whose mean rank is that of chance to a twentieth.
func (n Neighbours) Cautions() []string {
	var list []string
	for i, side := range []string{"images", "texts"} {
		if rank := []float64{n.Image, n.Text}[i]; n.Chance[i] > 0 && math.Abs(rank/n.Chance[i]-1) < 0.05 {
			list = append(list, "the neighbours of the "+side+" are no nearer than chance after the alignment")
		}
	}
	return list
}
