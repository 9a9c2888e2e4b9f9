package interaction

import "github.com/geoalign/geoalign/internal/exec"

// recurrentBlock is a block of pairs with their refined queries. The rows of a pair of sequence i of the
// context begin at row i*R+r of a matrix, where R are the rows of the queries of the block and
// the pair's begin at r.
type recurrentBlock struct {
	*crossBlock
	how     *recurrent
	now     int         // the step that work on sequences of the context is in
	values  []float32   // (rows of the context, 2C) W k
	first   []float32   // (R, 2C) W q + b; in the backward pass the gradient of the first step's gates, summed
	refined [][]float32 // (rows of pairs, C) x of each step but the first; one memory in the forward pass
	// (rows of pairs, 2C) g and u of each step but the last, then the gradients of what they were made of
	gates   [][]float32
	lengths [][]float32 // (rows of pairs) |x| before the norm, with Unit
	threads []recurrentThread

	dvalues  []float32 // (rows of the context, 2C)
	drefined []float32 // (rows of pairs, C) of the step
}

// recurrentThread is the memory of a thread.
type recurrentThread struct {
	products, dproducts []float32 // (q, k) of a step but the first
	dweights            []float32 // (q, k)
	reset, gate, zero   []float32 // (C), what a GRU has besides; zero stays 0
}

// floats is the memory of a block.
func (x *recurrent) floats(channels, threads int, backward bool) int {
	b := recurrentBlock{how: x, crossBlock: &crossBlock{cross: &x.cross, channels: channels, backward: backward}}
	var m carve
	b.crossBlock.lay(&m, threads)
	b.lay(&m, threads)
	return m.used
}

// lay gives a block its memory behind that of cross attention.
func (b *recurrentBlock) lay(m *carve, threads int) {
	q, k, c := b.most[b.query], b.most[1-b.query], b.channels
	pairs := q * b.sequences[1-b.query]
	b.values, b.first = m.take(k*2*c), m.take(q*2*c)
	for range b.how.steps - 1 {
		if len(b.refined) == 0 || b.backward {
			b.refined, b.gates = append(b.refined, m.take(pairs*c)), append(b.gates, m.take(pairs*2*c))
			b.lengths = append(b.lengths, m.take(pairs))
			continue
		}
		b.refined, b.gates, b.lengths = append(b.refined, b.refined[0]), append(b.gates, b.gates[0]),
			append(b.lengths, b.lengths[0])
	}
	if b.backward {
		b.dvalues, b.drefined = m.take(k*2*c), m.take(pairs*c)
	}
	n := b.sides[0].len * b.sides[1].len
	for range threads {
		b.threads = append(b.threads, recurrentThread{
			products: m.take(n), dproducts: m.take(n), dweights: m.take(n), reset: m.take(c), gate: m.take(c),
			zero: m.take(c),
		})
	}
}

func (x *recurrent) step(c *exec.Call, backward bool) (exec.Step, error) {
	m := &carve{memory: c.Scratch}
	b := &recurrentBlock{how: x, crossBlock: x.block(c, m, backward)}
	b.lay(m, c.Engine.Threads())
	attend, grams, slopes, sums, addGrams := b.attend, b.grams, b.slopes, b.sums, b.addGrams
	run := b.run(
		func(contexts int) {
			c.Engine.For(contexts, 1, grams)
			b.multiplyValues()
			clear(b.dvalues)
		},
		func(contexts int) {
			b.multiply()
			b.multiplyRows(b.span[b.query].rows(), b.packed[b.query], b.first)
			if !backward {
				b.steps(contexts, x.steps, attend)
				return
			}
			b.clearSlopes()
			b.steps(contexts, x.steps-1, attend) // the last one refines nothing
			b.stepsBack(contexts, slopes, sums)
			b.addSlopes()
		},
		func(contexts int) {
			b.addValues()
			c.Engine.For(contexts, 1, addGrams)
		})
	return func() error {
		for i := range b.threads {
			clear(b.threads[i].zero)
		}
		if backward {
			dweight, dbias := b.dmemory()
			clear(dweight)
			clear(dbias)
		}
		return run()
	}, nil
}
