package library

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"unsafe"

	"github.com/geoalign/geoalign/internal/dynlib"
)

// describe returns a descriptor of a rows x columns matrix with the two strides.
// In version 2 it is memory of ours, which room keeps alive.
func (d *dnnlMatmul) describe(room **[memoryDescRoom]byte, kind uintptr, rows, columns, rowStride,
	columnStride int) (uintptr, error) {
	shape := heap[[2][12]int64]() // dnnl_dims_t
	shape[0][0], shape[0][1] = int64(rows), int64(columns)
	shape[1][0], shape[1][1] = int64(rowStride), int64(columnStride)
	defer runtime.KeepAlive(shape)
	if d.major == 2 {
		*room = heap[[memoryDescRoom]byte]()
		at := address(*room)
		return at, d.call("dnnl_memory_desc_init_by_strides", at, 2, address(&shape[0]), kind, address(&shape[1]))
	}
	desc := heap[uintptr]()
	err := d.call("dnnl_memory_desc_create_with_strides", address(desc), 2, address(&shape[0]), kind,
		address(&shape[1]))
	return *desc, err
}

// prepared is a primitive descriptor with the descriptors that it was made of.
type prepared struct {
	desc   uintptr
	inputs [5]matmulInput // as matmul.inputs, without the last
	room   [4]*[memoryDescRoom]byte
}

// strides returns the strides of an operand as seen after the transposition.
func strides(trans bool, ld int) (row, column int) {
	if trans {
		return 1, ld
	}
	return ld, 1
}

// prepare makes the primitive descriptor of key.
func (d *dnnlMatmul) prepare(key matmulKey) (p *prepared, err error) {
	p = heap[prepared]()
	defer func() {
		if err != nil {
			d.discard(p)
		}
	}()
	add := func(i int, role int32, kind uintptr, rows, columns, rowStride, columnStride int) {
		if err == nil {
			p.inputs[i].role = role
			p.inputs[i].desc, err = d.describe(&p.room[i], kind, rows, columns, rowStride, columnStride)
		}
	}
	row, column := strides(key.transA, key.lda)
	add(0, dnnlSource, dnnlBF16, key.m, key.k, row, column)
	row, column = strides(key.transB, key.ldb)
	add(1, dnnlWeights, dnnlBF16, key.k, key.n, row, column)
	add(2, dnnlDestination, dnnlF32, key.m, key.n, key.ldc, 1)
	if key.bias {
		add(3, dnnlBias, dnnlF32, 1, key.n, key.n, 1)
	}
	if err != nil {
		return p, err
	}
	attr, err := d.attributes(math.Float32frombits(key.alpha), math.Float32frombits(key.beta))
	if err != nil {
		return p, err
	}
	defer d.release("dnnl_primitive_attr_destroy", attr)
	desc := heap[uintptr]()
	source, weights, destination, bias := p.inputs[0].desc, p.inputs[1].desc, p.inputs[2].desc, p.inputs[3].desc
	if d.major == 2 {
		op := heap[[matmulDescRoom]byte]()
		if err := d.call("dnnl_matmul_desc_init", address(op), source, weights, bias, destination); err != nil {
			return p, err
		}
		err = d.call("dnnl_primitive_desc_create", address(desc), address(op), attr, d.engine, 0)
		runtime.KeepAlive(op)
	} else {
		err = d.call("dnnl_matmul_primitive_desc_create", address(desc), d.engine, source, weights, bias, destination,
			attr)
	}
	p.desc = *desc
	return p, err
}

// discard destroys what prepare made.
func (d *dnnlMatmul) discard(p *prepared) {
	d.release("dnnl_primitive_desc_destroy", p.desc)
	if d.major != 2 {
		for _, in := range p.inputs {
			d.release("dnnl_memory_desc_destroy", in.desc)
		}
	}
}

// attributes returns the attributes of C = alpha*A*B + beta*C with working memory
// from the caller.
func (d *dnnlMatmul) attributes(alpha, beta float32) (attr uintptr, err error) {
	out := heap[[2]uintptr]() // attributes, post-ops
	if err := d.call("dnnl_primitive_attr_create", address(&out[0])); err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			d.release("dnnl_primitive_attr_destroy", out[0])
		}
	}()
	if err := d.call("dnnl_primitive_attr_set_scratchpad_mode", out[0], dnnlUserScratchpad); err != nil {
		return 0, err
	}
	if alpha == 1 && beta == 0 {
		return out[0], nil
	}
	if err := d.call("dnnl_post_ops_create", address(&out[1])); err != nil {
		return 0, err
	}
	defer d.release("dnnl_post_ops_destroy", out[1])
	status := int32(0)
	if alpha != 1 && d.major == 2 {
		scale := heap[float32]()
		*scale = alpha
		status = int32(dynlib.Call(d.fn["dnnl_primitive_attr_set_output_scales"], out[0], 1, 0, address(scale)))
		runtime.KeepAlive(scale)
		alpha = 1
	}
	// Fast kernels take a sum only in front of other steps, so that what remains is
	// C = alpha*(A*B + beta/alpha*C).
	if beta != 0 && status == 0 {
		status = d.float.sum(out[1], beta/alpha)
	}
	if alpha != 1 && status == 0 {
		status = d.float.linear(out[1], dnnlLinear3, alpha, 0)
	}
	if status != 0 {
		return 0, fmt.Errorf("post-ops: status %d", status)
	}
	return out[0], d.call("dnnl_primitive_attr_set_post_ops", out[0], out[1])
}

// implementation names the code that computes key.
func (d *dnnlMatmul) implementation(key matmulKey) (string, error) {
	p, err := d.prepare(key)
	if err != nil {
		return "", err
	}
	defer d.discard(p)
	return d.nameOf(p)
}

// nameOf names the code that oneDNN chose.
func (d *dnnlMatmul) nameOf(p *prepared) (string, error) {
	name := heap[unsafe.Pointer]()
	if err := d.call("dnnl_primitive_desc_query", p.desc, dnnlQueryName, 0, address(name)); err != nil {
		return "", err
	}
	return dynlib.String(*name), nil
}

// isReference reports whether a name is that of code written for clarity.
func isReference(name string) bool { return strings.HasPrefix(name, "ref") }

// compile creates the primitive of key. Where oneDNN refuses it, or has but the
// reference code, which takes a hundred times as long, the primitive is 0.
func (d *dnnlMatmul) compile(key matmulKey) *matmul {
	out := &matmul{key: key}
	p, err := d.prepare(key)
	if err != nil {
		return out
	}
	if name, err := d.nameOf(p); err != nil || isReference(name) {
		d.discard(p)
		return out
	}
	primitive := heap[uintptr]()
	if d.call("dnnl_primitive_create", address(primitive), p.desc) != nil {
		d.discard(p)
		return out
	}
	out.primitive, out.inputs, out.prepared = *primitive, p.inputs, p
	out.inputs[4] = matmulInput{role: dnnlScratchpad,
		desc: dynlib.Call(d.fn["dnnl_primitive_desc_query_md"], p.desc, dnnlQueryScratch, 0)}
	if out.inputs[4].desc != 0 {
		out.scratch = int(dynlib.Call(d.fn["dnnl_memory_desc_get_size"], out.inputs[4].desc))
	}
	if out.scratch == 0 {
		out.inputs[4] = matmulInput{}
	}
	return out
}

// destroy releases a product that is not in use.
func (d *dnnlMatmul) destroy(p *matmul) {
	if p.primitive == 0 {
		return
	}
	for _, c := range p.idle {
		d.destroyCall(c)
	}
	d.release("dnnl_primitive_destroy", p.primitive)
	d.discard(p.prepared)
}

func (d *dnnlMatmul) destroyCall(c *matmulCall) {
	for _, m := range c.memory {
		d.release("dnnl_memory_destroy", m)
	}
}

// newStream creates a queue of work for one thread at a time.
func (d *dnnlMatmul) newStream() uintptr {
	stream := heap[uintptr]()
	if err := d.call("dnnl_stream_create", address(stream), d.engine, dnnlInOrder); err != nil {
		panic("kernel: oneDNN: " + err.Error())
	}
	return *stream
}

// newCall creates the memory objects of a call of p, which point nowhere yet.
func (d *dnnlMatmul) newCall(p *matmul) *matmulCall {
	c := heap[matmulCall]()
	count := 0
	for i, in := range p.inputs {
		if in.role == 0 {
			continue
		}
		// A null handle (DNNL_MEMORY_NONE) makes an object without a buffer.
		if err := d.call("dnnl_memory_create", address(&c.memory[i]), in.desc, d.engine, 0); err != nil {
			d.destroyCall(c)
			panic("kernel: oneDNN: " + err.Error())
		}
		c.args[count].role, c.args[count].memory = in.role, c.memory[i]
		c.chain.calls[count] = cCall{fn: d.setHandle, args: [4]uintptr{c.memory[i]}}
		count++
	}
	c.chain.calls[count] = cCall{fn: d.run, args: [4]uintptr{p.primitive, 0, uintptr(count), address(&c.args[0])}}
	c.chain.n = count + 1
	return c
}

// execute runs p on c.data and returns oneDNN's status.
func (d *dnnlMatmul) execute(p *matmul, c *matmulCall, l *lane) int32 {
	j := 0
	for i := range p.inputs {
		if p.inputs[i].role == 0 {
			continue
		}
		c.chain.calls[j].args[1] = uintptr(c.data[i])
		j++
	}
	c.chain.calls[j].args[1] = l.stream
	status := c.chain.run()
	runtime.KeepAlive(l)
	clear(c.data[:]) // keep no buffer alive
	return status
}
