package library

import (
	"fmt"
	"sync"
	"unsafe"
)

// matmulKey tells the primitives of oneDNN's matmul apart. Scalars are kept as
// bits, so that a NaN is found again.
type matmulKey struct {
	transA, transB, bias bool
	m, n, k              int
	lda, ldb, ldc        int
	alpha, beta          uint32
}

// matmul is a compiled product. Its primitive may run on many threads at once;
// what changes from call to call is in a matmulCall.
type matmul struct {
	key       matmulKey
	primitive uintptr // 0 where oneDNN refused it
	prepared  *prepared
	inputs    [5]matmulInput // A, B, C, bias, working memory
	scratch   int            // bytes of working memory of a call
	idle      []*matmulCall
	users     int
	lastUse   uint64
}

// matmulInput is one argument of a primitive.
type matmulInput struct {
	role int32   // DNNL_ARG_...; 0: there is none
	desc uintptr // memory descriptor
}

// matmulCall holds the memory objects and the argument list of one call in
// progress. The chain points them to the buffers and executes the primitive.
type matmulCall struct {
	chain  callChain
	memory [5]uintptr
	data   [5]unsafe.Pointer // buffers in the order of matmul.inputs, during the call
	args   [5]struct {       // dnnl_exec_arg_t
		role   int32
		memory uintptr
	}
}

// lane is what a thread needs to execute primitives.
type lane struct {
	stream  uintptr
	scratch []byte
}

// matmulCache keeps the primitives that were used last, since creating one costs
// some hundreds of microseconds and a training step asks for a few dozen.
type matmulCache struct {
	mu      sync.Mutex
	api     *dnnlMatmul
	limit   int
	entries map[matmulKey]*matmul
	lanes   []*lane
	clock   uint64
}

// matmulLimit is the number of primitives kept: more than the products of one
// training step and one evaluation, for a few MB of generated code.
const matmulLimit = 512

// multiply is BGEMM; it returns false where oneDNN refused to make the primitive.
func (h *matmulCache) multiply(transA, transB bool, m, n, k int, alpha float32, a []uint16, lda int, b []uint16,
	ldb int, beta float32, c []float32, ldc int, bias []float32) bool {
	// A factor of the product would multiply the bias as well.
	key := matmulKey{transA: transA, transB: transB, bias: bias != nil && alpha == 1, m: m, n: n, k: k,
		lda: lda, ldb: ldb, ldc: ldc, alpha: floatBits(alpha), beta: floatBits(beta)}
	p, call, l := h.acquire(key)
	if p.primitive == 0 {
		h.release(p, nil, nil)
		return false
	}
	call.data[0], call.data[1], call.data[2] = unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), unsafe.Pointer(&c[0])
	if key.bias {
		call.data[3] = unsafe.Pointer(&bias[0])
	}
	if p.scratch > 0 {
		call.data[4] = unsafe.Pointer(&l.scratch[0])
	}
	status := h.api.execute(p, call, l)
	h.release(p, call, l)
	if status != 0 {
		panic(fmt.Sprintf("kernel: oneDNN refused a %d x %d x %d product in bfloat16 (status %d)", m, n, k, status))
	}
	if bias != nil && !key.bias {
		addRows(m, n, c, ldc, bias)
	}
	return true
}

// acquire returns the product of key, made if need be, and what a call of it needs.
func (h *matmulCache) acquire(key matmulKey) (*matmul, *matmulCall, *lane) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	p := h.entries[key]
	if p == nil {
		p = h.api.compile(key)
		h.entries[key] = p
		if len(h.entries) > h.limit {
			h.evict(p)
		}
	}
	p.users++
	p.lastUse = h.clock
	if p.primitive == 0 {
		return p, nil, nil
	}
	var call *matmulCall
	if i := len(p.idle) - 1; i >= 0 {
		call, p.idle = p.idle[i], p.idle[:i]
	} else {
		call = h.api.newCall(p)
	}
	var l *lane
	if i := len(h.lanes) - 1; i >= 0 {
		l, h.lanes = h.lanes[i], h.lanes[:i]
	} else {
		l = &lane{stream: h.api.newStream()}
	}
	if len(l.scratch) < p.scratch {
		l.scratch = make([]byte, p.scratch)
	}
	return p, call, l
}

// release gives back what acquire returned.
func (h *matmulCache) release(p *matmul, call *matmulCall, l *lane) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.users--
	if p.primitive == 0 {
		return
	}
	p.idle = append(p.idle, call)
	h.lanes = append(h.lanes, l)
}

// evict removes the product that was not used for longest, except keep and those
// in use.
func (h *matmulCache) evict(keep *matmul) {
	var oldest *matmul
	for _, p := range h.entries {
		if p != keep && p.users == 0 && (oldest == nil || p.lastUse < oldest.lastUse) {
			oldest = p
		}
	}
	if oldest != nil {
		delete(h.entries, oldest.key)
		h.api.destroy(oldest)
	}
}
