package model

import (
	"fmt"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/rng"
	"gorgonia.org/gorgonia"
)

// resNetTower is the residual network of a model.
func resNetTower(m config.Model) encoders.ResNetTower {
	r := m.Image.ResNet
	return encoders.ResNetTower{ResNet: encoders.ResNet{
		Size: m.Image.Size, Depth: r.Depth, Width: r.Width, SmallStem: r.SmallStem,
		FrozenStages: r.FrozenStages, FrozenNorm: r.FrozenNorm, Groups: r.ShuffleGroups, ZeroInitResidual: r.ZeroInitResidual,
	}}
}

// teacherNorms gives batch norms of the momentum encoder what they normalise by: statistics of their own batch, whose groups are of
// shuffled images, or the running ones. Either way those of the momentum encoder follow the student's, as all its parameters do.
func (b *builder) teacherNorms() {
	if b.s.TeacherContext == nil {
		return
	}
	r := b.cfg.Model.Image.ResNet
	if b.cfg.Model.Image.Style == config.StyleResNet && r.TeacherNorm == config.TeacherNormRunning {
		return
	}
	b.s.TeacherContext.Statistics = func(encoders.Moments, ...encoders.Moments) {}
	shuffles := 0
	b.s.TeacherContext.Shuffle = func(n int) (order, back *gorgonia.Node) {
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
