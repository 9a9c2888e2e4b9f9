package main

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/geoalign/geoalign/align"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/rng"
)

// method is a row of the table.
type method struct {
	name string
	fit  func(e *compute.Engine, p align.Pairs, seed uint64) (align.Map, error)
}

// fixed is a method of package align at fixed settings.
func fixed(m align.Method) func(*compute.Engine, align.Pairs, uint64) (align.Map, error) {
	return func(e *compute.Engine, p align.Pairs, _ uint64) (align.Map, error) { return m.Fit(e, p) }
}

// chosen is the method of a list that cross-validation over the drawn pairs takes.
func chosen(list ...align.Method) func(*compute.Engine, align.Pairs, uint64) (align.Map, error) {
	return func(e *compute.Engine, p align.Pairs, seed uint64) (align.Map, error) {
		best, _, err := align.Choose(e, p, list, 5, seed)
		if err != nil {
			return nil, err
		}
		return list[best].Fit(e, p)
	}
}

var methods = []method{
	{"ridge text to image, 1", fixed(align.Ridge{Direction: align.TextToImage, Lambda: 1})},
	{"ridge text to image, leave-one-out", fixed(align.Ridge{Direction: align.TextToImage})},
	{"ridge image to text, leave-one-out", fixed(align.Ridge{Direction: align.ImageToText})},
	{"ridge both ways, leave-one-out", fixed(align.Ridge{})},
	{"ridge both ways, 3", fixed(align.Ridge{Lambda: 3})},
	{"Procrustes", fixed(align.Procrustes{})},
	{"ASIF", fixed(align.ASIF{})},
	{"CSA", fixed(align.CSA{})},
	{"CCA", fixed(align.CCA{})},
	{"CCA, power 1.5", fixed(align.CCA{Power: 1.5})},
	{"CCA, power 2", fixed(align.CCA{Power: 2})},
	{"CCA, power 3", fixed(align.CCA{Power: 3})},
	{"CCA, lengths kept", fixed(align.CCA{Prepare: align.Prepare{KeepLength: true}})},
	{"CCA, cross-validated", chosen(align.CCA{Lambda: 1}, align.CCA{Lambda: 2}, align.CCA{Lambda: 4}, align.CCA{Lambda: 8}, align.CCA{Lambda: 16})},
}

// baseline is the method that the others are compared with, draw by draw.
const baseline = 0

// compare writes the table of a budget.
func compare(e *compute.Engine, d *dataset, list []method, budget, draws int, w, note io.Writer) error {
	if budget == 0 {
		budget = len(d.train)
	}
	if budget == len(d.train) {
		draws = 1
	}
	pairs, err := d.correspondence()
	if err != nil {
		return err
	}
	var rows [2][]float32
	for _, s := range []align.Side{align.Image, align.Text} {
		if rows[s], err = d.rows(s); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "\n%d pairs, %d draws\n\n| method | i2t @1 | @5 | @10 | t2i @1 | @5 | @10 | mean | beside the first | s |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n", budget, draws)
	first := make([]float64, draws)
	for k, m := range list {
		var all []eval.Metrics
		var gain []float64
		start := time.Now()
		for draw := range draws {
			seed := uint64(draw + 1)
			index := rng.New(seed, "fewpairs", 0).Perm(len(d.train))[:budget]
			fitted, err := m.fit(e, d.draw(index), seed)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			metrics, err := score(e, fitted, pairs, rows)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			all = append(all, metrics)
			if k == baseline {
				first[draw] = metrics.RMean()
			}
			gain = append(gain, metrics.RMean()-first[draw])
		}
		x := eval.Mean(all)
		mean, sd := meanSD(gain)
		fmt.Fprintf(w, "| %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.2f | %+.2f (%.2f) | %.1f |\n", m.name, x.I2T.R1, x.I2T.R5, x.I2T.R10, x.T2I.R1, x.T2I.R5, x.T2I.R10, x.RMean(), mean, sd, time.Since(start).Seconds())
		fmt.Fprintf(note, "%d pairs: %s\n", budget, m.name)
	}
	return nil
}

// score ranks the galleries.
func score(e *compute.Engine, m align.Map, pairs *eval.Correspondence, rows [2][]float32) (eval.Metrics, error) {
	var mapped [2][]float32
	for _, s := range []align.Side{align.Image, align.Text} {
		var err error
		if mapped[s], err = m.Apply(e, s, rows[s]); err != nil {
			return eval.Metrics{}, err
		}
	}
	c, t := m.Width(), pairs.NumTexts()
	ranks, err := eval.Rank(pairs, 256, func(row, n int, dst []float32) error {
		e.Gemm(false, true, n, t, c, 1, mapped[align.Image][row*c:], c, mapped[align.Text], c, 0, dst, t)
		return nil
	})
	if err != nil {
		return eval.Metrics{}, err
	}
	return ranks.Metrics(), nil
}

// meanSD returns the mean of values and their standard deviation.
func meanSD(values []float64) (mean, sd float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	if len(values) > 1 {
		for _, v := range values {
			sd += (v - mean) * (v - mean) / float64(len(values)-1)
		}
	}
	return mean, math.Sqrt(sd)
}
