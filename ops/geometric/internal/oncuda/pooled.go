package oncuda

import (
	"errors"
	"reflect"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// poolShare is the part of a device's memory that a pool may take.
const poolShare = 4

// poolPiece is about how many values of a pool go to the device at a time.
const poolPiece = 4 << 20

// onDevice takes a pool to the device of c, where all that read it share it. It returns 0 for a pool that is too large,
// or has rows that cannot be read: they are read by the host as they are wanted then, which says what is wrong with
// them.
func onDevice(c *exec.DeviceCall, pool batch.Pool) cuda.Pointer {
	d := cuda.Of(c)
	if 4*int64(pool.Rows())*int64(pool.Width()) > d.Info().Bytes/poolShare {
		return 0
	}
	var key any = pool
	if !reflect.TypeOf(pool).Comparable() {
		key = new(int) // equal to no other
	}
	at, err := d.Keep(key, func() (exec.Memory, error) { return copyPool(d, pool) })
	d.Note(err)
	return at
}

// copyPool copies a pool to the device, piece by piece; it returns nil if a row cannot be read.
func copyPool(d *cuda.Device, pool batch.Pool) (_ exec.Memory, err error) {
	rows, width := pool.Rows(), pool.Width()
	each := min(rows, max(1, poolPiece/width))
	m, err := d.Alloc(rows * width)
	if err != nil {
		return nil, err
	}
	stage, err := d.Alloc(each * width)
	if err != nil {
		return nil, errors.Join(err, m.Free())
	}
	for from := 0; from < rows; from += each {
		s := exec.Spec{Shape: tensor.Shape{min(each, rows-from), width}}
		piece := stage.Buffer(0, s)
		host := piece.Host().F32
		for i := range s.Shape[0] {
			if pool.Row(from+i, host[i*width:(i+1)*width]) != nil {
				return nil, errors.Join(stage.Free(), m.Free())
			}
		}
		err = errors.Join(piece.Store(),
			cuda.Copy(exec.Operand{Spec: s, Buffer: m.Buffer(from*width, s)}, exec.Operand{Spec: s, Buffer: piece}),
			d.Sync())
		if err != nil {
			return nil, errors.Join(err, stage.Free(), m.Free())
		}
	}
	return m, stage.Free()
}

// Gather reads rows of a pool that lies on the device. A row that does not exist has values that are no numbers.
func Gather(pool batch.Pool) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		at := onDevice(c, pool)
		if at == 0 {
			return nil
		}
		k := loadGeometric(c, "pool_rows", Options{}, 1)
		values := c.Out.Shape.TotalSize()
		return func() { k.Enqueue(cuda.Each(values), c.Out, at, c.In[0], int64(values), pool.Rows(), pool.Width()) }
	})
}

// Operands of Compare, as its op has them.
const (
	cmRows = iota
	cmPoints
	cmFeatures
)

// Compare is the step of the loss of some anchors.
func Compare(o Options, k, b, groups int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		rows, n, channels := c.In[cmPoints].Shape[0], c.In[cmPoints].Shape[1], c.In[cmFeatures].Shape[1]
		anchors := rows / k
		r := &cuda.Room{}
		x := newComparison(c, o, anchors, k, n, channels, groups, r)
		if x == nil {
			return nil
		}
		y, losses := words(r, rows*channels), words(r, anchors)
		base := cuda.Scratch(c, r.Bytes)
		x.place(base)
		y, losses = y+base, losses+base
		total := loadGeometric(c, "total_loss", o, x.per)
		scale := 1 / float32(b)
		return func() {
			x.find(cuda.At(c.In[cmRows]), anchors, k)
			x.run(cuda.At(c.In[cmPoints]), cuda.At(c.In[cmFeatures]), y, cuda.At(c.Aux[0]), losses, anchors, scale)
			total.Enqueue(cuda.Each(1), c.Out, losses, anchors, scale)
		}
	})
}

// Pooled is a loss of rows of a pool behind a head, with the computation of a chunk.
type Pooled struct {
	Rows, Key     *gorgonia.Node // inputs of a chunk; without dropout Key is nil
	Loss          *gorgonia.Node // and its results
	Grads         gorgonia.Nodes
	Copies        gorgonia.Nodes // of the parameters, which are the operands from First on
	First         int
	Points, Chunk int // of all chunks, and of one
	Offset        int // number of the first point
}

// Step is that of the whole op: the computation of a chunk runs on the device, for one chunk after the other, and what
// it gives is added up there. Neighbours that are no rows of the pool, an error on the host, make the loss no number.
func (p Pooled) Step() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		d := cuda.Of(c)
		// buffer is one of the computation of a chunk; nil of an input that nothing there reads.
		buffer := func(n *gorgonia.Node) *cuda.Buffer {
			b, err := c.Inner.Buffer(n)
			d.Note(err)
			own, _ := b.(*cuda.Buffer)
			return own
		}
		rows, key := buffer(p.Rows), (*cuda.Buffer)(nil)
		if p.Key != nil {
			key = buffer(p.Key)
		}
		// What a chunk gives, and where it is added up: the loss and the gradients.
		results, chunk := []exec.Operand{c.Out}, []*cuda.Buffer{buffer(p.Loss)}
		for i, g := range p.Grads {
			results, chunk = append(results, c.Aux[i]), append(chunk, buffer(g))
		}
		begin := loadGeometric(c, "chunk_inputs", Options{}, 1)
		bound := make([]exec.Buffer, len(p.Copies))
		total, n := p.Points, p.Chunk
		return func() {
			for i, x := range p.Copies {
				if b := c.In[p.First+i].Buffer; b != bound[i] {
					d.Note(c.Inner.SetInput(x, b))
					bound[i] = b
				}
			}
			var to, seed any
			if key != nil {
				to, seed = key.Pointer(), c.In[1]
			}
			for at := 0; at < total; at += n {
				begin.Enqueue(cuda.Each(n), rows.Pointer(), to, c.In[0], seed, n, at, total, p.Offset+at)
				d.Note(c.Inner.Run())
				for i, x := range results {
					if at == 0 {
						d.Note(cuda.Copy(x, exec.Operand{Spec: x.Spec, Buffer: chunk[i]}))
					} else {
						d.Note(d.Add(cuda.At(x), chunk[i].Pointer(), x.Shape.TotalSize()))
					}
				}
			}
		}
	})
}

// shapesOf returns the shapes of operands.
func shapesOf(in []exec.Operand) []tensor.Shape {
	list := make([]tensor.Shape, len(in))
	for i, x := range in {
		list[i] = x.Shape
	}
	return list
}
