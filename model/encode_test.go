package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"gorgonia.org/gorgonia"
)

// encodedSystems are configurations of every kind of tower, head and pool.
func encodedSystems(t testing.TB) map[string]config.Config {
	list := map[string]config.Config{"albef": tinyConfig(), "heads": tinyHeads(), "gru": tinyGRU()}
	for _, topology := range []string{"sphere", "Ob(4,2)", "Multi(2,4)", "euclid"} {
		c := tinyCLIP(topology)
		list[topology] = c
		c.Model.Head.TokenBlocks = 1
		list[topology+", late"] = c
	}
	for _, x := range []struct{ style, pool string }{{"bert", "pooler"}, {"bert", "mean"}, {"bert", "first_last"}, {"bert", "max"}, {"roberta", "mean"}, {"mpnet", "mean"},
		{"clip", ""}, {"siglip", ""}} {
		c := tinyCLIP("sphere")
		c.Model.Text.Style, c.Model.Text.Pool = x.style, x.pool
		list["text "+x.style+" "+x.pool] = c
	}
	for _, x := range []struct{ style, pool string }{{"vit", "mean"}, {"dinov2", ""}, {"siglip", ""}, {"clip", ""}} {
		c := tinyCLIP("sphere")
		c.Model.Image.Style, c.Model.Image.Pool = x.style, x.pool
		list["image "+x.style+" "+x.pool] = c
	}
	for name, c := range loraSystems(t) {
		list["tuned "+name] = c
	}
	for _, name := range hosts {
		list[name] = tinyHost(name)
	}
	for name, c := range list {
		if !c.Has(section.Stored) {
			c.Data.Tokens, c.Model.Text.Positions = 14, 40
			list[name] = c
		}
	}
	return list
}

// mixed is a batch of noise and of texts of 1 to all places.
func mixed(e *Encoder, n int, seed uint64) *batch.Batch {
	r, b := rand.New(rand.NewPCG(seed, 17)), batch.New(n, e.Columns()...)
	for _, c := range e.Columns() {
		for i := range b.Floats(c.Name) {
			b.Floats(c.Name)[i] = float32(r.NormFloat64())
		}
		for i := range b.Ints(c.Name) {
			switch c.Name {
			case batch.Tokens:
				b.Ints(c.Name)[i] = int32(r.IntN(tinyVocab))
			case batch.Lengths:
				b.Ints(c.Name)[i] = int32(1 + r.IntN(e.Len()))
			case batch.RegionLengths:
				b.Ints(c.Name)[i] = int32(1 + r.IntN(4))
			}
		}
	}
	return b
}

// plainly encodes a batch at once with all places, by a computation that keeps everything.
func plainly(t testing.TB, e *Encoder, b *batch.Batch) (states, classes, features []float32) {
	t.Helper()
	n := newNet(e.m.params)
	in := encoders.Inputs{}
	for _, c := range e.Columns() {
		if c.Type == batch.Int32 {
			in[c.Name] = n.inputs.Flat(c, b.Rows())
		} else {
			in[c.Name] = n.inputs.Column(c, b.Rows())
		}
	}
	q := e.side.tower.Encode(&encoders.Context{}, e.scope(n), in, encoders.Want{Tokens: true, Classes: true})
	f := e.project(n, q.Classes)
	m := check.Get(n.compile(exec.Config{Engine: e.m.engine}, gorgonia.Nodes{q.Tokens, q.Classes, f}))(t)
	check.OK(t, n.inputs.Fill(m, &feed.Step{Batch: b}))
	check.OK(t, m.RunAll())
	value := func(n *gorgonia.Node) []float32 {
		a := check.Get(m.Value(n))(t)
		return clone(a.F32)
	}
	return value(q.Tokens), value(q.Classes), value(f)
}

// smallChunks makes chunks so small that a batch of tiny texts is several.
func smallChunks(t testing.TB, most, least int) {
	a, b := chunkTokens, leastTokens
	chunkTokens, leastTokens = most, least
	t.Cleanup(func() { chunkTokens, leastTokens = a, b })
}

// TestEncoding: what an encoder gives in chunks, texts in the order of their length without padding, is what a
// computation of the whole batch gives, of every system; and a row has the same bits by itself as among others.
func TestEncoding(t *testing.T) {
	smallChunks(t, 60, 24)
	e := engineOf(t, kernel.Options{Backend: "builtin", Threads: 2})
	const n, tol = 23, 1e-5
	for name, cfg := range encodedSystems(t) {
		t.Run(name, func(t *testing.T) {
			m := modelOn(t, cfg, e)
			for _, x := range []*Encoder{m.Image(), m.Text()} {
				b := mixed(x, n, 1)
				wantStates, wantClasses, wantFeatures := plainly(t, x, b)
				states, features := check.Get2(x.Encode(t.Context(), b))(t)
				l, d := x.Len(), x.Width()
				for i := range n {
					words := l
					if lengths := b.Ints(batch.Lengths); lengths != nil {
						words = int(lengths[i])
					}
					at := i * l * d
					closeTo(t, x.side.name+" states", states[at:at+words*d], wantStates[at:at+words*d], tol)
				}
				closeTo(t, x.side.name+" features", features, wantFeatures, tol)
				classes := check.Get(x.EncodeClasses(t.Context(), b))(t)
				closeTo(t, x.side.name+" classes", classes, wantClasses, tol)
				features = check.Get(x.Features(t.Context(), b))(t)
				closeTo(t, x.side.name+" features alone", features, wantFeatures, tol)
				among := clone(features)
				one := batch.New(1, x.Columns()...)
				for i := range n {
					one.Row(0).Copy(b.Row(i))
					alone := check.Get(x.Features(t.Context(), one))(t)
					if c := len(alone); !sameBits(alone, among[i*c:(i+1)*c]) {
						t.Fatalf("%s row %d: %v alone, %v among others", x.side.name, i, alone, among[i*c:(i+1)*c])
					}
				}
			}
		})
	}
}

// TestEncodingOfTokens is TestEncoding of models that compare tokens.
func TestEncodingOfTokens(t *testing.T) {
	smallChunks(t, 30, 10)
	for _, name := range tokenHosts {
		m := build(t, tinyHost(name), "builtin", 1)
		for _, x := range []*Encoder{m.Image(), m.Text()} {
			b := mixed(x, 9, 2)
			tokens, lengths := check.Get2(x.EncodeTokens(t.Context(), b))(t)
			all, counts := clone(tokens), slices.Clone(lengths)
			smallChunks(t, 1000, 1000)
			one := batch.New(1, x.Columns()...)
			size := x.Len() * x.Dim()
			for i := range 9 {
				one.Row(0).Copy(b.Row(i))
				tokens, lengths = check.Get2(x.EncodeTokens(t.Context(), one))(t)
				if words := int(lengths[0]); counts[i] != lengths[0] || !sameBits(tokens[:words*x.Dim()], all[i*size:][:words*x.Dim()]) {
					t.Errorf("%s %s row %d is another one by itself", name, x.side.name, i)
				}
			}
		}
	}
}

// TestChunks: every row is in one chunk, no chunk has more tokens than it may but of one row, none has fewer places
// than its longest row, and sizes take few values.
func TestChunks(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	shapes := map[string]bool{}
	var c cutter
	for range 200 {
		n, most := 1+r.IntN(300), 1+r.IntN(80)
		b := batch.New(n, batch.Column{Name: batch.Lengths, Type: batch.Int32})
		for i := range n {
			b.Ints(batch.Lengths)[i] = int32(r.IntN(most + 1))
		}
		for _, short := range []bool{false, true} {
			seen := make([]int, n)
			at, tokens, padded := 0, 0, 0
			for _, k := range c.chunks(b, most, short) {
				if k.first != at || k.rows < 1 || k.rows > 1 && k.rows*k.places > chunkTokens {
					t.Fatalf("chunk %+v at %d", k, at)
				}
				for _, i := range c.order[at : at+k.rows] {
					l := int(b.Ints(batch.Lengths)[i])
					if seen[i]++; l > k.places || !short && (k.places != most || i != at) && k.places != most {
						t.Fatalf("row %d of %d tokens in %+v", i, l, k)
					}
					tokens, padded = tokens+l, padded+k.places
				}
				at += k.rows
				shapes[fmt.Sprint(k.rows)] = true
			}
			if at != n || slices.ContainsFunc(seen, func(k int) bool { return k != 1 }) {
				t.Fatalf("%d of %d rows: %v", at, n, seen)
			}
			if short && n > 150 && float64(padded) > 1.25*float64(tokens)+1e3 {
				t.Errorf("%d rows of %d places: %d places for %d tokens", n, most, padded, tokens)
			}
		}
	}
	if len(shapes) > 20 {
		t.Errorf("%d numbers of rows", len(shapes))
	}
}

// TestFewComputations: however many batches of whatever lengths, the computations that are kept are bounded, and so is
// the memory that they share.
func TestFewComputations(t *testing.T) {
	cfg := tinyCLIP("sphere")
	cfg.Data.Tokens, cfg.Model.Text.Positions = 300, 400
	x := build(t, cfg, "builtin", 1).Text()
	smallChunks(t, 600, 1)
	for i := range 90 {
		check.Get(x.Features(t.Context(), mixed(x, 1+i, uint64(i))))(t)
	}
	if len(x.encodings.kept) != mostKept {
		t.Errorf("%d computations are kept, want %d", len(x.encodings.kept), mostKept)
	}
	var largest int64
	for _, y := range x.encodings.kept {
		largest = max(largest, y.machine.Memory())
	}
	if got := x.encodings.room.Bytes(); float64(got) > 1.6*float64(largest)+math.MaxUint16 {
		t.Errorf("they share %d bytes, the largest has %d", got, largest)
	}
	x.Forget()
	if len(x.encodings.kept) != 0 || x.encodings.room.Bytes() != 0 {
		t.Error("something is kept of what was forgotten")
	}
}

// TestMatchOfShortTexts: pairs of texts that are shorter than the places of all have the scores that they have beside a
// text that needs them all, bit by bit.
func TestMatchOfShortTexts(t *testing.T) {
	cfg := tinyConfig()
	cfg.Data.Tokens, cfg.Model.Text.Positions = 14, 40
	m := build(t, cfg, "builtin", 2)
	const n = 4
	images, texts := mixed(m.Image(), n, 5), mixed(m.Text(), n, 6)
	lengths := texts.Ints(batch.Lengths)
	copy(lengths, []int32{5, 3, 6, 14})
	is, _ := check.Get2(m.Image().Encode(t.Context(), images))(t)
	ts, _ := check.Get2(m.Text().Encode(t.Context(), texts))(t)
	index := []int32{1, 0, 3, 2}
	scores := check.Get(m.Matcher().Match(t.Context(), ts, lengths, index, is, n, n))(t)
	want := clone(scores[:2*(n-1)])
	scores = check.Get(m.Matcher().Match(t.Context(), ts[:(n-1)*len(ts)/n], lengths[:n-1], index[:n-1], is, n-1, n))(t)
	if !sameBits(scores, want) {
		t.Errorf("%v without the long text, %v with it", scores, want)
	}
	places := map[int]bool{}
	for of := range m.Matcher().logits.kept {
		places[of.places] = true
	}
	if !places[6] || !places[14] {
		t.Errorf("computed with %v places, want 6 and 14", places)
	}
}

// TestPreparedWeights: a model that is opened for inference, whose weights are packed and rounded once, has the
// features of one whose weights may change, bit by bit, in both precisions; and its weights are prepared.
func TestPreparedWeights(t *testing.T) {
	smallChunks(t, 60, 24)
	for _, precision := range []string{"fp32", "bf16"} {
		e := engineOf(t, kernel.Options{Backend: "builtin", Threads: 2, Precision: precision})
		for name, cfg := range map[string]config.Config{"albef": tinyConfig(), "clip": tinyCLIP("Multi(2,4)")} {
			m := modelOn(t, cfg, e)
			p := check.Get(Open(cfg, Options{Engine: e, Vocab: tinyVocab, MaskID: 4}, &memorySource{p: m.params}))(t)
			for i, x := range []*Encoder{m.Image(), m.Text()} {
				y := []*Encoder{p.Image(), p.Text()}[i]
				for _, n := range []int{1, 9} {
					b := mixed(x, n, 7)
					want := check.Get(x.Features(t.Context(), b))(t)
					got := check.Get(y.Features(t.Context(), b))(t)
					if !sameBits(got, want) {
						t.Errorf("%s in %s, %d rows of %s: other features by prepared weights", name, precision, n, x.side.name)
					}
				}
			}
			prepared := 0
			for _, q := range p.params.list {
				if q.packs != nil {
					prepared++
				}
			}
			if prepared < 10 {
				t.Errorf("%s: %d weights are prepared", name, prepared)
			}
		}
	}
}
