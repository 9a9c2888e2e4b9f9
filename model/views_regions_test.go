package model

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/internal/check"
)

// TestMaskedViews: with masks that hide nothing the hinge loss is that of both views of an image, and of one text;
// others hide regions anew at each step, and evaluation sees all.
func TestMaskedViews(t *testing.T) {
	host := func(mask, hinge float64) *Trainer {
		cfg := tinyHost("esa_norm")
		cfg.Model.Image.Regions.Mask = mask
		cfg.Objective.Hinge.Margin = hinge
		return buildCLIP(t, cfg)
	}
	const margin = .3
	plain := host(0, margin)
	b := normBatches(plain, 1)[0]
	for i := range b.Rows() {
		b.Row(i).Set(batch.RegionLengths, int32(4))
	}
	loss := func(m *Trainer, counter int) float64 {
		return stepOf(t, m, &feed.Step{Batch: b, Counter: counter}).Loss
	}
	// The scores of the step, whose batch norm sees the batch: features of evaluation with those statistics.
	loss(plain, 0)
	for range 400 {
		check.OK(t, plain.After())
		check.OK(t, plain.keep(&feed.Step{Batch: b}))
	}
	image, text := hostFeatures(t, plain, b)
	score := func(i, j int) (s float64) {
		for c := range 8 {
			s += float64(image[i*8+c]) * float64(text[j*8+c])
		}
		return s
	}
	var rows, columns float64
	for i := range 5 {
		row, column := 0.0, 0.0
		for j := range 5 {
			if i != j {
				row, column = max(row, margin+score(i, j)-score(i, i)), max(column, margin+score(j, i)-score(i, i))
			}
		}
		rows, columns = rows+row, columns+column
	}
	if got := loss(plain, 0); !(math.Abs(got-rows-columns) <= .02*got) {
		t.Fatalf("the loss of one view is %v, want %v", got, rows+columns)
	}
	if got, want := loss(host(1e-9, margin), 0)-loss(plain, 0), rows; !(math.Abs(got-want) <= .02*want) {
		t.Errorf("a second view adds %v, want the rows again, %v", got, want)
	}
	half := host(.5, margin)
	if one, two, again := loss(half, 0), loss(half, 1), loss(half, 0); one == two || one != again {
		t.Errorf("losses %v, %v and %v", one, two, again)
	}
	_, before := hostFeatures(t, half, b)
	seen, _ := hostFeatures(t, half, b)
	fresh, _ := hostFeatures(t, host(0, margin), b)
	if !sameBits(seen, fresh) || len(before) == 0 {
		t.Error("evaluation sees masked images")
	}
}
