package model

import (
	"fmt"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/rng"
	"gorgonia.org/gorgonia"
)

// teacherNorms gives batch norms of the momentum twin what they normalise by: statistics of their own batch, whose groups are of
// shuffled images, or the running ones. Either way the running ones of the twin follow the student's, as all twins do.
func (b *builder) teacherNorms() {
	if b.s.Mentor == nil {
		return
	}
	r := b.cfg.Model.Image.ResNet
	if b.cfg.Model.Image.Style == encoders.StyleResNet && r.TeacherNorm == encoders.TeacherNormRunning {
		return
	}
	b.s.Mentor.Statistics = func(encoders.Moments, ...encoders.Moments) {}
	shuffles := 0
	b.s.Mentor.Shuffle = func(n int) (order, back *gorgonia.Node) {
		shuffles++
		name := fmt.Sprintf("%s/%d", rng.Shuffle, shuffles)
		first, all := b.o.Group.Rank()*n, b.o.Group.Size()*n
		draw := func(f *feed.Step) []int { return rng.New(b.s.Seed, name, f.Stream()).Perm(all) }
		order = b.s.Ints(name+"/order", func(f *feed.Step, dst []int32) error {
			for i, from := range draw(f)[first:][:n] {
				dst[i] = int32(from)
			}
			return nil
		}, n)
		return order, b.s.Ints(name+"/back", func(f *feed.Step, dst []int32) error {
			for i, from := range draw(f) {
				if from >= first && from < first+n {
					dst[from-first] = int32(i)
				}
			}
			return nil
		}, n)
	}
}
