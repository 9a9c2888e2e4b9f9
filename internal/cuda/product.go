package cuda

import (
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
	preferenceWorkspace                                          = 1
	preferenceAlignA, preferenceAlignB, preferenceAlignC         = 5, 6, 7
	preferenceAlignD                                             = 8
)

// workspaceBytes is what cuBLASLt may use besides operands: what its documentation recommends for Hopper.
const workspaceBytes = 32 << 20

// startMatrix opens cuBLASLt.
func (d *Device) startMatrix() error {
	if s := d.matrix.call("cublasLtCreate", uintptr(unsafe.Pointer(&d.handle))); s != 0 {
		return d.matrixError("cublasLtCreate", s)
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
	text := map[uintptr]string{1: "not initialised", 3: "no memory", 7: "invalid value", 8: "the device lacks a feature", 13: "execution failed", 14: "internal error", 15: "not supported"}[status]
	if text == "" {
		text = "unknown error"
	}
	return &Error{Call: call, Status: int(status), Text: text}
}

// Product is C = op(A) op(B) + beta C for row-major matrices, op(A) (M, K), op(B) (K, N) and C (M, N): a batch of them, or
// one where Batch is 0.
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
	align [3]int // of the addresses, in bytes up to 16
}

// algorithm is how cuBLASLt computes a product.
type algorithm struct {
	desc, a, b, c uintptr
	algo          *[8]uint64
	separate      bool // the bias is added by a kernel of its own
}

// Multiply enqueues p for matrices at these addresses. The first call for a product chooses the algorithm.
func (d *Device) Multiply(p Product, a, b, c, bias Pointer) error {
	key := productKey{p, [3]int{alignment(a), alignment(b), alignment(c)}}
	x := d.products[key]
	if x == nil {
		var err error
		if x, err = d.plan(key); err != nil {
			return fmt.Errorf("product %d x %d x %d (leading dimensions %d, %d, %d): %w", p.M, p.N, p.K, p.LDA, p.LDB, p.LDC, err)
		}
		d.products[key] = x
	}
	if p.Bias && !x.separate {
		at := uint64(bias)
		if s := d.matrix.call("cublasLtMatmulDescSetAttribute", x.desc, descBias, uintptr(unsafe.Pointer(&at)), 8); s != 0 {
			return d.matrixError("cublasLtMatmulDescSetAttribute", s)
		}
	}
	scale := &[2]float32{p.Alpha, p.Beta}
	if p.Alpha == 0 {
		scale[0] = 1
	}
	// cuBLASLt's matrices are column-major: it computes the transpose of C, of op(B) and op(A) exchanged.
	err := d.matrixDo("cublasLtMatmul", d.handle, x.desc, uintptr(unsafe.Pointer(&scale[0])), uintptr(b), x.a, uintptr(a), x.b,
		uintptr(unsafe.Pointer(&scale[1])), uintptr(c), x.c, uintptr(c), x.c, uintptr(unsafe.Pointer(&x.algo[0])),
		uintptr(d.workspace.at), workspaceBytes, d.stream)
	runtime.KeepAlive(scale)
	if err != nil || !p.Bias || !x.separate {
		return err
	}
	name := "add_bias_float"
	if p.C == exec.BFloat16 {
		name = "add_bias_bf16"
	}
	n := p.M * p.N
	return d.Kernel(&basicSource, name).Launch(Grid{X: Blocks(n, 1024), Threads: 256}, c, bias, int64(n), p.N)
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
	return d.matrixError(name, d.matrix.call(name, args...))
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
func (d *Device) plan(key productKey) (*algorithm, error) {
	x, err := d.describe(key)
	if err == nil {
		return x, nil
	}
	if key.Bias && key.BiasType == exec.Float32 && key.LDC == key.N && key.Batch == 0 {
		key.Bias = false
		if x, e := d.describe(key); e == nil {
			x.separate = true
			return x, nil
		}
	}
	return nil, err
}

// describe makes the descriptors of a product and takes the algorithm that cuBLASLt deems the fastest.
func (d *Device) describe(key productKey) (*algorithm, error) {
	x := &algorithm{algo: new([8]uint64)}
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
	err := d.matrixDo("cublasLtMatmulDescCreate", uintptr(unsafe.Pointer(&x.desc)), compute, real32)
	err = set(err, "cublasLtMatmulDescSetAttribute", x.desc, descTransA, transpose(key.TransB), 4)
	err = set(err, "cublasLtMatmulDescSetAttribute", x.desc, descTransB, transpose(key.TransA), 4)
	epilogue := uint64(epilogueNone)
	if key.Bias {
		epilogue = epilogueBias
		err = set(err, "cublasLtMatmulDescSetAttribute", x.desc, descBiasType, realType(key.BiasType), 4)
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
		to              *uintptr
		t               exec.Type
		rows, cols, ld  int
		stride          int
		alignAt, aligns uintptr
	}{
		{&x.a, key.B, bRows, bCols, key.LDB, key.StrideB, preferenceAlignA, 0},
		{&x.b, key.A, aRows, aCols, key.LDA, key.StrideA, preferenceAlignB, 0},
		{&x.c, key.C, key.N, key.M, key.LDC, key.StrideC, preferenceAlignC, 0},
	} {
		if err == nil {
			err = d.matrixDo("cublasLtMatrixLayoutCreate", uintptr(unsafe.Pointer(l.to)), uintptr(realType(l.t)), uintptr(l.rows), uintptr(l.cols), uintptr(l.ld))
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
	for i, which := range []uintptr{preferenceAlignB, preferenceAlignA, preferenceAlignC} {
		err = set(err, "cublasLtMatmulPreferenceSetAttribute", *preference, which, uint64(key.align[i]), 4)
	}
	err = set(err, "cublasLtMatmulPreferenceSetAttribute", *preference, preferenceAlignD, uint64(key.align[2]), 4)
	if err != nil {
		return nil, err
	}
	// cublasLtMatmulHeuristicResult_t: algorithm (64 bytes), workspace (8), status (4), waves (4), reserved (16).
	result, found := new([12]uint64), new(int32)
	err = d.matrixDo("cublasLtMatmulAlgoGetHeuristic", d.handle, x.desc, x.a, x.b, x.c, x.c, *preference, 1, uintptr(unsafe.Pointer(result)), uintptr(unsafe.Pointer(found)))
	if err == nil && (*found == 0 || uint32(result[9]) != 0) {
		err = &Error{Call: "cublasLtMatmulAlgoGetHeuristic", Status: 15, Text: "no algorithm"}
	}
	if err != nil {
		return nil, err
	}
	copy(x.algo[:], result[:8])
	return x, nil
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
