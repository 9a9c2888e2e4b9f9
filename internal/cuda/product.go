package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/geoalign/geoalign/internal/exec"
)

// matrixFunctions are those of cuBLASLt that are called (cublasLt.h).
var matrixFunctions = []string{
	"cublasLtCreate", "cublasLtDestroy", "cublasLtGetVersion", "cublasLtMatmul", "cublasLtMatmulAlgoGetHeuristic",
	"cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute", "cublasLtMatmulDescDestroy",
	"cublasLtMatrixLayoutCreate", "cublasLtMatrixLayoutSetAttribute", "cublasLtMatrixLayoutDestroy",
	"cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulPreferenceDestroy",
}

// Numbers of library_types.h, cublas_api.h and cublasLt.h.
const (
	real32, realBF16          = 0, 14
	computeFloat, computeTF32 = 68, 77
	opNone, opTranspose       = 0, 1

	descTransA, descTransB, descEpilogue, descBias, descBiasType = 3, 4, 7, 8, 26
	epilogueNone, epilogueBias                                   = 1, 4
	layoutBatch, layoutStride                                    = 5, 6
	preferenceWorkspace, preferenceReduction                     = 1, 3
	preferenceAlignA, preferenceAlignB, preferenceAlignC         = 5, 6, 7
	preferenceAlignD                                             = 8
	reductionNone, reductionCompute                              = 0, 2
)

// candidates is how many algorithms cuBLASLt is asked for.
const candidates = 8

// workspaceBytes is what cuBLASLt may use besides operands: what its documentation recommends for Hopper.
const workspaceBytes = 32 << 20

// startMatrix opens cuBLASLt.
func (d *Device) startMatrix() error {
	if s := d.matrix.call("cublasLtCreate", uintptr(unsafe.Pointer(&d.handle))); s != 0 {
		return fmt.Errorf("%w: the driver may be older than cuBLASLt, or the memory of the device be taken (nvidia-smi shows both)", d.matrixError("cublasLtCreate", s))
	}
	v := int(d.matrix.call("cublasLtGetVersion"))
	d.info.CuBLASLt = fmt.Sprintf("%d.%d.%d", v/10000, v/100%100, v%100)
	var err error
	d.workspace, err = d.alloc(workspaceBytes)
	return err
}

// matrixError makes an error of a status of cuBLASLt.
func (d *Device) matrixError(call string, status uintptr) error {
	if status == 0 {
		return nil
	}
	text := map[uintptr]string{1: "not initialised", 3: "no memory", 7: "invalid value",
		8: "the device lacks a feature", 13: "execution failed", 14: "internal error", 15: "not supported"}[status]
	if text == "" {
		text = "unknown error"
	}
	return &Error{Call: call, Status: int(status), Text: text}
}

// Product is C = op(A) op(B) + beta C for row-major matrices, op(A) (M, K), op(B) (K, N) and C (M, N): a batch of them,
// or one where Batch is 0.
type Product struct {
	TransA, TransB bool
	M, N, K        int
	LDA, LDB, LDC  int       // elements between the beginnings of rows
	A, B, C        exec.Type // Float32 or BFloat16; A and B are of one type
	Beta           float32   // 0 or 1
	Alpha          float32   // 0 stands for 1
	// Bias: a row (N) is added to each row of C, of the type that BiasType says.
	Bias     bool
	BiasType exec.Type

	Batch                     int
	StrideA, StrideB, StrideC int // elements from one matrix of the batch to the next
}

// productKey is what the choice of an algorithm depends on.
type productKey struct {
	Product
	align [4]int // of the addresses of A, B, C and the bias, in bytes up to 16
}

// algorithm is how cuBLASLt computes a product.
type algorithm struct {
	desc, a, b, c uintptr
	choices       [][8]uint64 // the first one is used
	separate      bool        // the bias is added by a kernel of its own
	tuned         bool
}

// Multiply enqueues p for matrices at these addresses. The first call for a product chooses the algorithm.
func (d *Device) Multiply(p Product, a, b, c, bias Pointer) error {
	if p.M == 0 || p.N == 0 {
		return nil
	}
	var err error
	for _, at := range []*Pointer{&a, &b, &c, &bias} {
		if err == nil {
			*at, err = d.address(*at)
		}
	}
	if err == nil {
		err = d.multiply(p, a, b, c, bias)
	}
	if err != nil {
		err = fmt.Errorf("product %d x %d x %d (leading dimensions %d, %d, %d): %w", p.M, p.N, p.K, p.LDA, p.LDB,
			p.LDC, err)
	}
	return err
}

func (d *Device) multiply(p Product, a, b, c, bias Pointer) error {
	if p.Alpha == 0 {
		p.Alpha = 1
	}
	key := productKey{p, [4]int{alignment(a), alignment(b), alignment(c), alignment(bias)}}
	x := d.products[key]
	if x == nil {
		var err error
		if x, err = d.plan(key, bias); err != nil {
			return err
		}
		d.products[key] = x
	}
	if p.Bias && !x.separate {
		at := uint64(bias)
		if err := d.matrixDo("cublasLtMatmulDescSetAttribute", x.desc, descBias, uintptr(unsafe.Pointer(&at)),
			8); err != nil {
			return err
		}
	}
	if !x.tuned && !d.recording {
		if err := d.settle(x, key, a, b, c); err != nil {
			return err
		}
	}
	err := d.run(x, &x.choices[0], p, a, b, c, c)
	for err != nil && len(x.choices) > 1 && !d.recording { // cuBLASLt proposes what it then refuses: rare, but known
		x.choices = x.choices[1:]
		err = d.run(x, &x.choices[0], p, a, b, c, c)
	}
	if err != nil || !p.Bias || !x.separate {
		return err
	}
	return d.addBias(p, c, bias)
}

// run enqueues a product, of which C is read at c and written at to.
func (d *Device) run(x *algorithm, choice *[8]uint64, p Product, a, b, c, to Pointer) error {
	scale := &[2]float32{p.Alpha, p.Beta}
	// cuBLASLt's matrices are column-major: it computes the transpose of C, of op(B) and op(A) exchanged.
	err := d.matrixDo("cublasLtMatmul", d.handle, x.desc, uintptr(unsafe.Pointer(&scale[0])), uintptr(b), x.a,
		uintptr(a), x.b,
		uintptr(unsafe.Pointer(&scale[1])), uintptr(c), x.c, uintptr(to), x.c, uintptr(unsafe.Pointer(&choice[0])),
		uintptr(d.workspace.at), workspaceBytes, d.stream)
	runtime.KeepAlive(scale)
	return err
}

// matrixDo calls a function of cuBLASLt in the device's context.
//
//go:uintptrescapes
func (d *Device) matrixDo(name string, args ...uintptr) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.driver.err("cuCtxSetCurrent", d.driver.call("cuCtxSetCurrent", d.driver.context)); err != nil {
		return err
	}
	err := d.matrixError(name, d.matrix.call(name, args...))
	if err != nil { // which may be that of what ran before
		if lost := (*Error)(nil); errors.As(d.Sync(), &lost) && lost.Lost() {
			return lost
		}
	}
	return err
}

// alignment returns the largest power of two up to 16 that divides an address.
func alignment(p Pointer) int {
	a := 16
	for p%Pointer(a) != 0 {
		a /= 2
	}
	return a
}

// plan asks cuBLASLt how to compute a product.
func (d *Device) plan(key productKey, bias Pointer) (*algorithm, error) {
	x, err := d.describe(key, bias)
	if err == nil || !key.Bias {
		return x, err
	}
	key.Bias = false
	if x, e := d.describe(key, 0); e == nil {
		x.separate = true
		return x, nil
	}
	return nil, err
}

// describe makes the descriptors of a product and takes the algorithms that cuBLASLt deems the fastest.
func (d *Device) describe(key productKey, bias Pointer) (_ *algorithm, err error) {
	x := &algorithm{}
	defer func() {
		if err != nil {
			d.forget(x)
		}
	}()
	compute := uintptr(computeFloat)
	if d.options.TF32 && key.A == exec.Float32 {
		compute = computeTF32
	}
	set := func(err error, name string, handle, attribute uintptr, value uint64, size uintptr) error {
		if err != nil {
			return err
		}
		v := &value
		return d.matrixDo(name, handle, attribute, uintptr(unsafe.Pointer(v)), size)
	}
	err = d.matrixDo("cublasLtMatmulDescCreate", uintptr(unsafe.Pointer(&x.desc)), compute, real32)
	err = set(err, "cublasLtMatmulDescSetAttribute", x.desc, descTransA, transpose(key.TransB), 4)
	err = set(err, "cublasLtMatmulDescSetAttribute", x.desc, descTransB, transpose(key.TransA), 4)
	epilogue := uint64(epilogueNone)
	if key.Bias {
		epilogue = epilogueBias
		err = set(err, "cublasLtMatmulDescSetAttribute", x.desc, descBiasType, realType(key.BiasType), 4)
		// its alignment is looked at
		err = set(err, "cublasLtMatmulDescSetAttribute", x.desc, descBias, uint64(bias), 8)
	}
	err = set(err, "cublasLtMatmulDescSetAttribute", x.desc, descEpilogue, epilogue, 4)
	if err != nil {
		return nil, err
	}
	// Rows and columns as they are stored, column-major.
	bRows, bCols, aRows, aCols := key.N, key.K, key.K, key.M
	if key.TransB {
		bRows, bCols = key.K, key.N
	}
	if key.TransA {
		aRows, aCols = key.M, key.K
	}
	for _, l := range []struct {
		to                     *uintptr
		t                      exec.Type
		rows, cols, ld, stride int
	}{
		{&x.a, key.B, bRows, bCols, key.LDB, key.StrideB},
		{&x.b, key.A, aRows, aCols, key.LDA, key.StrideA},
		{&x.c, key.C, key.N, key.M, key.LDC, key.StrideC},
	} {
		if err == nil {
			err = d.matrixDo("cublasLtMatrixLayoutCreate", uintptr(unsafe.Pointer(l.to)), uintptr(realType(l.t)),
				uintptr(l.rows), uintptr(l.cols), uintptr(l.ld))
		}
		if key.Batch > 0 {
			err = set(err, "cublasLtMatrixLayoutSetAttribute", *l.to, layoutBatch, uint64(key.Batch), 4)
			err = set(err, "cublasLtMatrixLayoutSetAttribute", *l.to, layoutStride, uint64(l.stride), 8)
		}
	}
	preference := new(uintptr)
	if err == nil {
		err = d.matrixDo("cublasLtMatmulPreferenceCreate", uintptr(unsafe.Pointer(preference)))
	}
	if err != nil {
		return nil, err
	}
	defer d.matrix.call("cublasLtMatmulPreferenceDestroy", *preference)
	err = set(err, "cublasLtMatmulPreferenceSetAttribute", *preference, preferenceWorkspace, workspaceBytes, 8)
	// Parts of a sum over K that are made side by side are kept as float32 and added in a fixed order by a step of
	// their own: not in C, in its type.
	err = set(err, "cublasLtMatmulPreferenceSetAttribute", *preference, preferenceReduction,
		reductionNone|reductionCompute, 4)
	for _, p := range []struct {
		which uintptr
		align int
	}{{preferenceAlignA, key.align[1]}, {preferenceAlignB, key.align[0]}, {preferenceAlignC, key.align[2]},
		{preferenceAlignD, key.align[2]}} {
		err = set(err, "cublasLtMatmulPreferenceSetAttribute", *preference, p.which, uint64(p.align), 4)
	}
	if err != nil {
		return nil, err
	}
	results, found := new([candidates]heuristicResult), new(int32)
	err = d.matrixDo("cublasLtMatmulAlgoGetHeuristic", d.handle, x.desc, x.a, x.b, x.c, x.c, *preference, candidates,
		uintptr(unsafe.Pointer(results)), uintptr(unsafe.Pointer(found)))
	if err != nil {
		return nil, err
	}
	for _, r := range results[:min(max(*found, 0), candidates)] {
		if r.state == 0 && r.workspace <= workspaceBytes {
			x.choices = append(x.choices, r.algorithm)
		}
	}
	if len(x.choices) == 0 {
		return nil, &Error{Call: "cublasLtMatmulAlgoGetHeuristic", Status: 15, Text: "no algorithm"}
	}
	return x, nil
}

// heuristicResult is cublasLtMatmulHeuristicResult_t.
type heuristicResult struct {
	algorithm [8]uint64
	workspace uint64
	state     int32
	_         float32 // waves
	_         [4]int32
}

// forget gives the descriptors of a product back.
func (d *Device) forget(x *algorithm) {
	for _, l := range []uintptr{x.a, x.b, x.c} {
		if l != 0 {
			d.matrix.call("cublasLtMatrixLayoutDestroy", l)
		}
	}
	if x.desc != 0 {
		d.matrix.call("cublasLtMatmulDescDestroy", x.desc)
	}
}

func transpose(t bool) uint64 {
	if t {
		return opTranspose
	}
	return opNone
}

func realType(t exec.Type) uint64 {
	if t == exec.BFloat16 {
		return realBF16
	}
	return real32
}
