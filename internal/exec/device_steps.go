package exec

import (
	"slices"

	"github.com/geoalign/geoalign/internal/cause"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// onDevice returns the op's own step for the device, with the computation within it; nil where it has none.
func (b *builder) onDevice(i int, accumulate bool) (Step, *Inner, error) {
	e := &b.plan.entries[i]
	prepare := func(c *DeviceCall) (Step, error) { return nil, nil }
	if own, ok := e.node.Op().(DeviceOp); ok {
		prepare = func(c *DeviceCall) (Step, error) { return own.PrepareOn(b.cfg.Device.Name(), c) }
	} else if d, ok := b.cfg.Device.(Adder); ok && isAdd(e.node.Op()) {
		prepare = d.PrepareAdd
	}
	d := &DeviceCall{
		Out: Operand{Spec: b.spec(e.out), Buffer: b.buffers[i]}, Aux: b.operands(i), Accumulate: accumulate,
		BF16: b.cfg.Engine.BF16(), Unread: !b.cfg.CheckNaN && !b.read[value{i, 0}],
	}
	for k, r := range e.shadows {
		switch {
		case r.unit < 0:
		case k == 0:
			d.Out.Shadow = b.buffer(r)
		default:
			d.Aux[k-1].Shadow = b.buffer(r)
		}
	}
	for k, j := range e.in {
		x := b.operand(e, k) // without a buffer for an input so far
		d.In, d.InAux = append(d.In, x), append(d.InAux, b.operands(j))
	}
	if e.inner != nil {
		inner, err := b.innerOnDevice(e)
		if err != nil {
			return nil, nil, err
		}
		d.Inner = inner
	}
	step, err := prepare(d)
	if step == nil || err != nil {
		if d.Inner != nil {
			err = cause.Join(err, d.Inner.free())
		}
		return nil, nil, err
	}
	for k, j := range e.in {
		if slot := b.views[j]; slot != nil {
			slot.placed = true
			slot.deviceUses = append(slot.deviceUses, &d.In[k])
			d.In[k].Buffer = slot.buffer
		}
	}
	return step, d.Inner, nil
}

// operands returns the auxiliary results of entry i.
func (b *builder) operands(i int) (out []Operand) {
	for k, r := range b.plan.entries[i].aux {
		out = append(out, Operand{Spec: b.spec(r), Buffer: b.auxes[i][k]})
	}
	return out
}

// operand returns operand k of an entry as its step reads it: the result, or its shadow.
func (b *builder) operand(e *entry, k int) Operand {
	j := e.in[k]
	out := b.plan.entries[j].out
	if u := e.shadowOf(k); u >= 0 {
		r := result{unit: u, shape: out.shape}
		return Operand{Spec: b.spec(r), Buffer: b.buffer(r)}
	}
	if out.unit < 0 {
		return Operand{Spec: inputSpec(b.plan.entries[j].node)}
	}
	return Operand{Spec: b.spec(out), Buffer: b.buffers[j]}
}

// staged makes the host's step of entry i work on copies: of in, its operands but for inputs, and of results.
func (b *builder) staged(i int, c *Call, in []Buffer, step Step) Step {
	e := &b.plan.entries[i]
	read := slices.Clone(in)
	for _, j := range e.in {
		read = append(read, b.auxes[j]...)
	}
	if c.Accumulate {
		read = append(read, b.buffers[i])
	}
	written := append([]Buffer{b.buffers[i]}, b.auxes[i]...)
	return func() error {
		for _, x := range read {
			if err := x.Fetch(); err != nil {
				return err
			}
		}
		if err := step(); err != nil {
			return err
		}
		for _, x := range written {
			if err := x.Store(); err != nil {
				return err
			}
		}
		return nil
	}
}

// widen gives c float32 in place of bfloat16 that the op's step on the host does not read or write, and returns both
// for each: of what it reads and of what it writes.
func (b *builder) widen(e *entry, c *Call) (read, written []Array) {
	float := func(a *Array, takes bool, list *[]Array) {
		if a.F32 != nil || a.BF16 == nil || takes {
			return
		}
		a.F32 = make([]float32, a.Len())
		*list = append(*list, *a)
		a.BF16 = nil
	}
	o := e.node.Op()
	for k, j := range e.in {
		if b.views[j] == nil {
			float(&c.In[k], readsHalf(o, k), &read)
		}
	}
	float(&c.Out, writesHalf(o, -1), &written)
	for k := range c.Aux {
		float(&c.Aux[k], writesHalf(o, k), &written)
	}
	return read, written
}

// widened returns step with what takes values from one to the other.
func widened(read, written []Array, step Step) Step {
	if len(read)+len(written) == 0 {
		return step
	}
	return func() error {
		for _, x := range read {
			vector.FromBF16(x.F32, x.BF16)
		}
		err := step()
		for _, x := range written {
			vector.ToBF16(x.BF16, x.F32)
		}
		return err
	}
}
