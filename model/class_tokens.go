package model

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
)

// trained is the tower of a side as a training step has it: of class tokens that are kept it reads those.
func (x side) trained() encoders.Tower {
	if x.inTraining != nil {
		return x.inTraining
	}
	if !x.kept {
		return x.tower
	}
	columns := map[string]string{"image": batch.ImageTower, "text": batch.TextTower}
	return encoders.ClassTower{Tower: x.tower, Column: columns[x.name]}
}

// ask asks for the parameters of a tower that the step does not run, in a computation that is not compiled.
func (b *builder) ask(x *side) {
	n := newNet(b.params)
	scope := b.scope(encoders.NewScope(n.params), x.name).As(encoders.Traits{Locked: true})
	x.tower.Encode(&encoders.Context{}, scope, n.towerInputs(x.tower, b.s.Rows, nil), encoders.Want{Classes: true})
}

// Kept says whether training reads the class tokens of a side, image or text, as a column of the batch
// (data.cache_features), and how many numbers a row has.
func (p *Trainer) Kept(name string) (width int, kept bool) {
	for _, x := range []side{p.design.image, p.design.text} {
		if x.name == name && x.kept {
			return x.trained().Columns()[0].Len(), true
		}
	}
	return 0, false
}

// TowerHash is a hash of what decides the class tokens that the tower of a side, image or text, gives for an input: its
// parameters, and the settings by which it and its inputs are made. Kernels count too, since they round in their own
// ways.
func (p *Model) TowerHash(name string) []byte {
	h := sha256.New()
	m, d := p.cfg.Model, p.cfg.Data
	m.Image.Freeze, m.Text.Freeze = false, false
	fmt.Fprintf(h, "%s\x00%+v\x00%s\x00%d\x00%s\x00%s\x00", name, m.Head.Topology, m.System, m.Head.TokenBlocks,
		p.engine.Backend(), p.cfg.Compute.Precision)
	if name == "image" {
		size := 0 // of images that are shrunk on the way
		if d.Cache != "none" {
			size = d.CacheSize
		}
		fmt.Fprintf(h, "%+v\x00%d\x00%d\x00", m.Image, d.MaxPixels, size)
	} else {
		m.Text.Dropout = 0
		fmt.Fprintf(h, "%+v\x00%d\x00%d\x00", m.Text, d.Tokens, p.o.Pad)
	}
	for _, q := range p.params.List() {
		if strings.HasPrefix(q.Name, name+"/") {
			fmt.Fprintf(h, "%s %v\x00", q.Name, q.Shape)
			hashNumbers(h, p.params.Value(q))
		}
	}
	return h.Sum(nil)
}

// hashNumbers adds numbers to a hash.
func hashNumbers(h hash.Hash, x []float32) {
	b := make([]byte, 0, 1<<14)
	for chunk := range slices.Chunk(x, cap(b)/4) {
		b = b[:0]
		for _, v := range chunk {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		h.Write(b)
	}
}

// checkTrained refuses a step that trains no parameter.
func (b *builder) checkTrained() error {
	if slices.ContainsFunc(b.params.list, func(q *Param) bool { return !q.Frozen && !q.Locked }) {
		return nil
	}
	key, m := "model.text.freeze", b.cfg.Model
	if m.Image.Freeze && !m.Text.Freeze {
		key = "model.image.freeze"
	}
	return config.Errors{{Path: key, Value: true,
		Msg:  "leaves no parameter to train: no head, score or loss of this model has any",
		Hint: "set it to false, or tune the tower by model.tuning or model.lora without it"}}
}
