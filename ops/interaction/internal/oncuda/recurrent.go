package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var recurrentSource = cuda.NewSource(files, "recurrent", "cross.cu", "recurrent.cu")

// Limits of a block on the CUDA device besides those of cross attention: tokens of the queries, as long as sequences
// fit, and values of the refined queries of all pairs, and of W k of the context. A variable for tests.
var RefinedLimits = struct{ Queries, Values int }{1024, 8 << 20}

// recurrentWork is a step on the CUDA device, in blocks as on the host. What a pair has of its own lies in matrices of
// pairs: those with context i of the block begin at row i*R, where R are the rows of the queries of the block. In
// bfloat16 the gradients of gates are rounded for all that reads them, the sum that is the gradient of the bias too.
type recurrentWork struct {
	*pairsWork
	how *Recurrent

	values, first cuda.Pointer // (rows of the context, 2C) W k, and (R, 2C) W q + b
	taken         []takenStep

	// Of the backward pass.
	drefined cuda.Pointer // (pairs, C) the gradient of the queries of a step
	// (pairs, 2C) that of the gates that made them, and (R, 2C) of the first step's, summed
	dgates, dfirst  cuda.Matrix
	dvalues         cuda.Pointer // (rows of the context, 2C)
	valuesRead      cuda.Matrix  // values as products read them, and in the end dvalues
	dbias           cuda.Pointer // (R, 2C), whose sum over the rows is the gradient of the bias
	dweights, sums  cuda.Pointer // (R, columns) of a step, and of the products that the scores read, summed
	dstep, attended cuda.Matrix  // (R, columns) of the products of a step, and its weights

	kernels struct{ weigh, score, refine, slopes, gateSlopes, sumGates, sumQueries, sumRows *cuda.Kernel }
}

// takenStep has the products that the attention of a step reads and what it makes of the queries. The memory of the
// forward pass is that of all steps.
type takenStep struct {
	products       cuda.Pointer
	refined        cuda.Pointer // (pairs, C)
	half           cuda.Matrix  // those rounded, where products read bfloat16
	gates, lengths cuda.Pointer // (pairs, 2C) g and u, and (pairs) |x| before the norm
}

// prepare makes the step.
func (x *Recurrent) prepare(c *exec.DeviceCall, backward bool) cuda.Step {
	if !x.fits() {
		return nil
	}
	b := x.beginSteps(c, backward)
	b.scratch()
	b.source = recurrentSource
	k := &b.kernels
	k.weigh, k.score, k.refine = b.kernel("weigh"), b.kernel("score"), b.kernel("refine")
	if !backward {
		return b.run(b.forward)
	}
	k.slopes, k.gateSlopes, k.sumGates = b.kernel("step_slopes"), b.kernel("gate_slopes"), b.kernel("sum_gates")
	k.sumQueries, k.sumRows = b.kernel("sum_queries"), b.kernel("add_weighted")
	return b.back(b.run(b.blockBack))
}

// beginSteps begins a step and asks for the memory of a block.
func (x *Recurrent) beginSteps(c *exec.DeviceCall, backward bool) *recurrentWork {
	q, k, channels := x.Sides[x.Query].Len, x.Sides[1-x.Query].Len, c.In[0].Shape[1]
	weight := cuda.Part{In: x.Weight, Rows: 2 * channels, Cols: 2 * channels, Type: cuda.ProductType(c)}
	b := &recurrentWork{how: x, pairsWork: x.beginBlocks(c, backward, BlockLimits{
		Queries:  min(CrossLimits.Queries, RefinedLimits.Queries),
		Context:  min(CrossLimits.Context, RefinedLimits.Values/(2*channels)),
		Products: min(CrossLimits.Products, RefinedLimits.Values/channels*k),
	}, weight)}
	rows, contexts := b.most[x.Query]*q, b.most[1-x.Query]
	pairs, columns := rows*contexts, contexts*b.columns()
	b.values, b.first = b.floats(contexts*k*2*channels), b.floats(rows*2*channels)
	b.takeSteps(pairs)
	if !backward {
		return b
	}
	b.dweights, b.sums = b.weights, b.mixed // the weights of all steps lie elsewhere
	b.weights, b.mixed = b.ofSteps(), b.ofSteps()
	b.drefined, b.dgates, b.dfirst = b.floats(pairs*channels), b.read(pairs, 2*channels), b.read(rows, 2*channels)
	b.dvalues, b.valuesRead = b.floats(contexts*k*2*channels), b.read(contexts*k, 2*channels)
	b.dbias, b.dstep, b.attended = b.floats(rows*2*channels), b.read(rows, columns), b.read(rows, columns)
	return b
}

// takeSteps asks for the memory of the steps.
func (b *recurrentWork) takeSteps(pairs int) {
	again := b.matrix()
	for t := range b.how.Steps {
		var s takenStep
		switch {
		case t > 0 && !b.backward:
			s = b.taken[0]
		case t+1 < b.how.Steps:
			s = takenStep{refined: b.floats(pairs * b.channels), half: b.rounded(pairs, b.channels),
				gates: b.floats(2 * pairs * b.channels), lengths: b.floats(pairs)}
		}
		switch {
		case t == 0:
			s.products = b.products[attentionSite]
		case t == 1 || !b.backward:
			s.products = again
		default:
			s.products = b.matrix()
		}
		b.taken = append(b.taken, s)
	}
}

// ofSteps asks for a matrix of all products of a block for each step, one behind the other.
func (b *recurrentWork) ofSteps() cuda.Pointer {
	return b.room.Take(4 * int64(b.how.Steps) * int64(b.most[b.Query]*b.Sides[b.Query].Len) * int64(b.ld))
}

// ofStep is the matrix of step t of those; in the forward pass there is one.
func (b *recurrentWork) ofStep(p cuda.Pointer, t int) cuda.Pointer {
	if !b.backward {
		return p
	}
	return p + cuda.Pointer(4*t*b.queryRows()*b.ld)
}

// queryRows and contexts are the rows of the queries of the block, and its sequences of the context.
func (b *recurrentWork) queryRows() int { return b.now[b.Query].count * b.Sides[b.Query].Len }
func (b *recurrentWork) contexts() int  { return b.now[1-b.Query].count }

// columns are those that a context has of dstep and attended, so that each begins where products read fast.
func (b *recurrentWork) columns() int { return (b.Sides[1-b.Query].Len + 7) / 8 * 8 }

// weight is the part of the weight that is for queries, or for the context.
func (b *recurrentWork) weight(ofContext bool) cuda.Matrix {
	m := b.rows[b.Cross.Rows]
	if ofContext {
		m = m.From(b.channels)
	}
	return m
}

// queries are x of a step as products read them, and as floats: the rows of all queries in the first one.
func (b *recurrentWork) queries(t int) (cuda.Matrix, any) {
	if t == 0 {
		m, _ := b.tokens(b.Query)
		return m, b.c.In[b.Query]
	}
	s := b.taken[t-1]
	if b.product == exec.BFloat16 {
		return b.placed(s.half), b.at(s.refined)
	}
	return cuda.FloatsAt(b.at(s.refined), b.channels), b.at(s.refined)
}

// launchRows runs a kernel of which a warp works on a row of a pair.
func (b *recurrentWork) launchRows(k *cuda.Kernel, before, behind []any) {
	b.launchOn(k, cuda.Grid{Y: cuda.Blocks(b.Sides[b.Query].Len, 4)}, before, behind)
}

// last says whether a step is the last one, which makes nothing of its queries.
func (b *recurrentWork) last(t int) bool { return t+1 == b.how.Steps }
