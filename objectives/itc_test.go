package objectives

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// contrastCase is a batch with its queue.
type contrastCase struct {
	b, q, filled, c int
	ids, queueIDs   []int32 // nil: pairs
	tau, alpha      float64
	soft            bool

	image, text, imageM, textM, imageQueue, textQueue []float32
}

func newContrastCase(seed uint64, b, q, filled, c int) *contrastCase {
	r := rand.New(rand.NewPCG(seed, 9))
	return &contrastCase{
		b: b, q: q, filled: filled, c: c, tau: .2, alpha: .4, soft: true,
		image: unitRows(r, b, c), text: unitRows(r, b, c), imageM: unitRows(r, b, c), textM: unitRows(r, b, c),
		imageQueue: unitRows(r, q, c), textQueue: unitRows(r, q, c),
	}
}

// run returns the loss and the gradients for image, text and temperature.
func (k *contrastCase) run(t testing.TB) (float64, [][]float32) {
	t.Helper()
	n := newBench(t)
	tau := n.floats("tau", []float32{float32(k.tau)})
	m := MomentumContrast{
		Image: n.floats("image", k.image, k.b, k.c), Text: n.floats("text", k.text, k.b, k.c),
		ImageM: n.floats("image m", k.imageM, k.b, k.c), TextM: n.floats("text m", k.textM, k.b, k.c),
		Score: cosineScore(Temperature{Node: tau}), Target: cosineScore(Temperature{Node: tau}),
	}
	m.ImageBank, m.TextBank = &Bank{Keys: m.ImageM}, &Bank{Keys: m.TextM}
	if k.q > 0 {
		m.ImageBank.Queue, m.TextBank.Queue = n.floats("image queue", k.imageQueue, k.q, k.c), n.floats("text queue", k.textQueue, k.q, k.c)
		m.ImageBank.Cols = n.scalarInt("cols", k.b+k.filled)
		m.TextBank.Cols = m.ImageBank.Cols
	}
	if k.soft {
		m.Alpha = n.floats("alpha", []float32{float32(k.alpha)})
	}
	if k.ids != nil {
		m.Positives = Positives{RowIDs: n.ints("row ids", k.ids...), ColIDs: n.ints("col ids", append(slices.Clone(k.ids), k.queueIDs...)...)}
	} else {
		labels := make([]int32, k.b)
		for i := range labels {
			labels[i] = int32(i)
		}
		m.Positives.Labels = n.ints("labels", labels...)
	}
	return n.lossAndGrads(m.Build().Loss, m.Image, m.Text, tau)
}

// oracle computes the loss loop by loop. The teacher's own temperature is teacherTau,
// which has no gradient.
func (k *contrastCase) oracle(tau, teacherTau float64) float64 {
	bankT := append(slices.Clone(k.textM), k.textQueue[:k.filled*k.c]...)
	bankI := append(slices.Clone(k.imageM), k.imageQueue[:k.filled*k.c]...)
	hard := diagonal(k.b, k.b+k.filled)
	if k.ids != nil {
		hard = byID(k.ids, append(slices.Clone(k.ids), k.queueIDs[:k.filled]...))
	}
	alpha := 0.
	var ti, tt [][]float64
	if k.soft {
		alpha = k.alpha
		ti, tt = scores(k.imageM, bankT, k.c, teacherTau), scores(k.textM, bankI, k.c, teacherTau)
	}
	return (softLoss(scores(k.image, bankT, k.c, tau), hard, ti, alpha) + softLoss(scores(k.text, bankI, k.c, tau), hard, tt, alpha)) / 2
}

// TestMomentumContrastAgainstOracle covers batch 2, no queue, a queue that is empty,
// partly and fully filled, ids, and every alpha of interest.
func TestMomentumContrastAgainstOracle(t *testing.T) {
	for _, c := range []struct {
		b, q, filled int
		ids, queue   []int32
		alpha        float64
		soft         bool
	}{
		{2, 0, 0, nil, nil, .4, true},
		{4, 0, 0, nil, nil, 0, false},
		{4, 6, 0, nil, nil, .4, true},
		{4, 6, 3, nil, nil, .4, true},
		{4, 6, 6, nil, nil, 1, true},
		{3, 5, 2, nil, nil, 0, true},
		{4, 6, 3, []int32{7, 3, 7, 9}, []int32{3, 5, 7, 7, 7, -100}, .4, true},
		{2, 3, 3, []int32{1, 1}, []int32{1, 0, -100}, .4, true},
		{4, 6, 0, []int32{7, 3, 7, 9}, []int32{-100, -100, -100, -100, -100, -100}, 0, false},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			k := newContrastCase(3, c.b, c.q, c.filled, 5)
			k.ids, k.queueIDs, k.alpha, k.soft = c.ids, c.queue, c.alpha, c.soft
			loss, grads := k.run(t)
			near(t, "loss", loss, k.oracle(k.tau, k.tau), 1e-6)
			f := func() float64 { return k.oracle(k.tau, k.tau) }
			nearAll(t, "gradient of image", grads[0], fdGrad(k.image, f), 1e-4)
			nearAll(t, "gradient of text", grads[1], fdGrad(k.text, f), 1e-4)
			const h = 1e-4
			dTau := (k.oracle(k.tau+h, k.tau) - k.oracle(k.tau-h, k.tau)) / (2 * h)
			nearAll(t, "gradient of the temperature", grads[2], []float64{dTau}, 1e-4)
		})
	}
}

// TestUnfilledRowsHaveNoInfluence replaces queue rows beyond the filled ones, and
// their ids, by anything: the same bits.
func TestUnfilledRowsHaveNoInfluence(t *testing.T) {
	for _, ids := range []bool{false, true} {
		k := newContrastCase(4, 4, 6, 2, 5)
		if ids {
			k.ids, k.queueIDs = []int32{1, 2, 1, 3}, []int32{2, 1, -100, -100, -100, -100}
		}
		loss, grads := k.run(t)
		for i := 2 * k.c; i < len(k.imageQueue); i++ {
			k.imageQueue[i], k.textQueue[i] = float32(math.NaN()), float32(math.Inf(1))
		}
		if ids {
			k.queueIDs = []int32{2, 1, 1, 2, 3, 1}
		}
		again, gradsAgain := k.run(t)
		if loss != again {
			t.Errorf("ids=%t: the loss was %v and is %v", ids, loss, again)
		}
		for i := range grads {
			if !slices.Equal(grads[i], gradsAgain[i]) {
				t.Errorf("ids=%t: gradient %d changed", ids, i)
			}
		}
		// The filled rows do count.
		k.textQueue[0] += 1
		if changed, _ := k.run(t); changed == loss {
			t.Errorf("ids=%t: a filled row has no influence", ids)
		}
	}
}

// TestContrastUnderflow: at a temperature of 1e-4 the logits reach +-1e4 and almost
// every probability is 0 in float32.
func TestContrastUnderflow(t *testing.T) {
	k := newContrastCase(5, 4, 6, 6, 5)
	k.tau = 1e-4
	loss, grads := k.run(t)
	near(t, "loss", loss, k.oracle(float64(float32(k.tau)), float64(float32(k.tau))), 1e-4)
	for i, g := range grads {
		for _, v := range g {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				t.Fatalf("gradient %d holds %v", i, v)
			}
		}
	}
}

// TestInBatchContrastAgainstOracle has gradient on both sides.
func TestInBatchContrastAgainstOracle(t *testing.T) {
	for _, ids := range [][]int32{nil, {5, 5, 2, 0}, {1, 1, 1, 1}} {
		k := newContrastCase(6, 4, 0, 0, 5)
		n := newBench(t)
		image, text := n.floats("image", k.image, 4, 5), n.floats("text", k.text, 4, 5)
		tau := n.floats("tau", []float32{float32(k.tau)})
		p := Positives{}
		hard := diagonal(4, 4)
		if ids != nil {
			p.RowIDs = n.ints("ids", ids...)
			p.ColIDs = p.RowIDs
			hard = byID(ids, ids)
		} else {
			p.Labels = n.ints("labels", 0, 1, 2, 3)
		}
		at := func(tau float64) float64 {
			return (softLoss(scores(k.image, k.text, 5, tau), hard, nil, 0) + softLoss(scores(k.text, k.image, 5, tau), hard, nil, 0)) / 2
		}
		loss, grads := n.lossAndGrads(InBatchContrast(cosineScore(Temperature{Node: tau}).Pairs(image, text), p).Loss, image, text, tau)
		near(t, "loss", loss, at(k.tau), 1e-6)
		f := func() float64 { return at(k.tau) }
		nearAll(t, "gradient of image", grads[0], fdGrad(k.image, f), 1e-4)
		nearAll(t, "gradient of text", grads[1], fdGrad(k.text, f), 1e-4)
		const h = 1e-4
		nearAll(t, "gradient of the temperature", grads[2], []float64{(at(k.tau+h) - at(k.tau-h)) / (2 * h)}, 1e-4)
	}
}

// TestDistilledRow by hand: student logits [2,1,0], teacher logits [1,1,0],
// positive 0, alpha .4 give .700823. Every row of both directions is that row, turned
// so that its own column is the positive.
func TestDistilledRow(t *testing.T) {
	student, teacher := [3]float32{2, 1, 0}, [3]float32{1, 1, 0}
	// Channel i of an image picks row i of the student's matrix out of the keys, channel
	// 3+i of a momentum image row i of the teacher's.
	image, imageM, text, textM := make([]float32, 18), make([]float32, 18), make([]float32, 18), make([]float32, 18)
	for i := range 3 {
		image[i*6+i], imageM[i*6+3+i] = 1, 1
		for j := range 3 {
			own := (j - i + 3) % 3
			textM[j*6+i], textM[j*6+3+i] = student[own], teacher[own]
			text[j*6+3+i] = student[own]
		}
	}
	n := newBench(t)
	im, tm, score := n.floats("image m", imageM, 3, 6), n.floats("text m", textM, 3, 6), cosineScore(Temperature{Node: n.floats("tau", []float32{1})})
	c := MomentumContrast{
		Image: n.floats("image", image, 3, 6), ImageM: im, Text: n.floats("text", text, 3, 6), TextM: tm,
		ImageBank: &Bank{Keys: im}, TextBank: &Bank{Keys: tm}, Score: score, Target: score, Alpha: n.floats("alpha", []float32{.4}),
		Positives: Positives{Labels: n.ints("labels", 0, 1, 2)},
	}.Build()
	out := n.run(c.Loss, c.I2T, c.T2I)
	if want := []float32{2, 1, 0, 0, 2, 1, 1, 0, 2}; !slices.Equal(out[1].F32, want) {
		t.Fatalf("logits %v, want %v", out[1].F32, want)
	}
	if want := []float32{2, 0, 1, 1, 2, 0, 0, 1, 2}; !slices.Equal(out[2].F32, want) {
		t.Fatalf("logits %v, want %v", out[2].F32, want)
	}
	near(t, "contrast", float64(out[0].F32[0]), .700823, 1e-6)
	// Masked language modelling has the same formula.
	n = newBench(t)
	loss := MaskedLM(n.floats("logits", student[:], 1, 3), n.floats("teacher", teacher[:], 1, 3), n.ints("labels", 0), n.floats("alpha", []float32{.4}))
	near(t, "masked language modelling", float64(n.run(loss)[0].F32[0]), .700823, 1e-6)
}

// TestIDTargets by hand: ids [7,3,7], queue ids [-100,3,7,7]. The target of a
// row shows in the gradient of its logits, (softmax - target)/rows. With a temperature
// of 1 and features e_i the gradient of feature i is that of its logits times the keys.
func TestIDTargets(t *testing.T) {
	const b, q = 3, 4
	n := newBench(t)
	// Keys and queue rows are the 7 axes, images are rows of zeros: all logits are 0 and
	// d loss_i2t / d image_i = (1/7 - target)/b, half of it in the mean of both directions.
	keys, queue := make([]float32, b*7), make([]float32, q*7)
	for j := range b {
		keys[j*7+j] = 1
	}
	for j := range q {
		queue[j*7+b+j] = 1
	}
	image := n.floats("image", make([]float32, b*7), b, 7)
	text := n.floats("text", make([]float32, b*7), b, 7)
	imageM, textM := n.floats("image m", keys, b, 7), n.floats("text m", keys, b, 7)
	imageQ, textQ := n.floats("image queue", queue, q, 7), n.floats("text queue", queue, q, 7)
	c := MomentumContrast{
		Image: image, Text: text, ImageM: imageM, TextM: textM,
		ImageBank: &Bank{Keys: imageM, Queue: imageQ}, TextBank: &Bank{Keys: textM, Queue: textQ},
		Score:     cosineScore(Temperature{Node: n.floats("tau", []float32{1})}),
		Positives: Positives{RowIDs: n.ints("row ids", 7, 3, 7), ColIDs: n.ints("col ids", 7, 3, 7, -100, 3, 7, 7)},
	}.Build()
	_, grads := n.lossAndGrads(c.Loss, image, text)
	want := [][]float64{{.25, 0, .25, 0, 0, .25, .25}, {0, .5, 0, 0, .5, 0, 0}, {.25, 0, .25, 0, 0, .25, .25}}
	for _, g := range grads {
		for i := range b {
			for j := range 7 {
				target := 1./7 - 2*b*float64(g[i*7+j])
				near(t, fmt.Sprintf("target of row %d, column %d", i, j), target, want[i][j], 1e-6)
			}
		}
	}
}
