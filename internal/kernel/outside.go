package kernel

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/geoalign/geoalign/internal/dynlib"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/library"
	"github.com/geoalign/geoalign/internal/kernel/tune"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// Before this process computes a product by a library for the first time, to measure it or since a run has chosen it,
// another process does, with operands of its own. What ends that process, or does not come back, is left out for the
// product. The other process is this program again (dynlib.Start). It goes on from product to product, so that a start
// of a process and of the libraries, 0.1 s, is paid once, and once more for each that ends it.

// servant is its name.
const servant = "products"

// outsideTimeout is how long it may take to start, or to compute a product.
var outsideTimeout = 10 * time.Second

// mostOperand is the number of values of an operand above which a product is not tried, and not measured, since the
// other process needs operands of its own.
const mostOperand = 64 << 20

// attempt is a product that the other process computes by a library.
type attempt struct {
	Library     string
	Half        bool // by its product in bfloat16
	Side        side
	Key         tune.Key
	Alpha, Beta float32
}

// tester computes an attempt in another process. A *dynlib.EndedError says that it ended it; any other error, that
// there is none.
type tester interface {
	try(a attempt) error
	close()
}

// outside is the other process of an engine, and what it has to load.
type outside struct {
	Threads   int
	Precision string
	Libraries []outsideLibrary
	child     *dynlib.Child
}

type outsideLibrary struct{ Name, File string }

// newOutside returns what tries the products of libraries for an engine, nil where there are none.
func newOutside(threads int, bf16 bool, libraries []library.Loaded) tester {
	o := &outside{Threads: threads, Precision: precisionFP32}
	if bf16 {
		o.Precision = precisionBF16
	}
	for _, l := range libraries {
		if l.Info.File != "" {
			o.Libraries = append(o.Libraries, outsideLibrary{l.Info.Name, l.Info.File})
		}
	}
	if len(o.Libraries) == 0 {
		return nil
	}
	return o
}

func (o *outside) try(a attempt) error {
	if o.child == nil {
		setup, err := json.Marshal(o)
		if err != nil {
			return err
		}
		c, err := dynlib.Start(servant, string(setup))
		if err != nil {
			return err
		}
		if err := c.Ask(nil, new(struct{}), outsideTimeout); err != nil {
			var end *dynlib.EndedError
			if errors.As(err, &end) && end.Late { // as for a product: the machine is busy
				return err
			}
			// no EndedError, since it has nothing to do with a product
			return fmt.Errorf("to load the libraries %v", err)
		}
		o.child = c
	}
	err := o.child.Ask(a, new(struct{}), outsideTimeout)
	if err != nil {
		o.child = nil
	}
	return err
}

func (o *outside) close() {
	if o.child != nil {
		o.child.Close()
		o.child = nil
	}
}

// mostEnds is the number of products for which a library may end the other process before it is left out for all.
const mostEnds = 3

// sound says whether this process may compute p by a choice, as far as another one tells that computed it.
func (t *tuner) sound(product string, p *gemm.Product, c choice) bool {
	kernel, lib := t.nameOf(p, c), t.nameOf(p, choice{way: c.way})
	switch {
	case !t.foreign(p, c):
		return true
	case t.refused || t.table.Ended(product, kernel):
		return false
	case t.outside == nil || t.table.Passed(product, kernel):
		return true
	case t.ends[lib] >= mostEnds:
		return false
	}
	err := t.outside.try(attempt{Library: lib, Half: c.way.path == pathLibrary, Side: c.side, Key: tune.KeyOf(p),
		Alpha: p.Alpha, Beta: p.Beta})
	var end *dynlib.EndedError
	if err == nil {
		t.table.Tried(product, kernel, true)
		return true
	}
	if !errors.As(err, &end) {
		t.refused = true
		t.e.warn(fmt.Sprintf("products of libraries are not measured, since they cannot be tried in a process of their own: %v", err))
		return false
	}
	what := fmt.Sprintf("%s is left out for the product %s, which %s", kernel, product, end.How)
	switch {
	case end.Late:
		t.table.Late(product, kernel)
		what += ": nothing more is measured until the next start, which tries it again"
	case !end.Outside:
		t.table.Tried(product, kernel, false)
	}
	t.e.warn(what)
	if t.ends[lib]++; t.ends[lib] == mostEnds {
		t.e.warn(fmt.Sprintf("%s is not measured for further products: it has ended %d processes", lib, mostEnds))
	}
	return false
}

// untried returns the number of choices for which sound has to ask the other process.
func (t *tuner) untried(product string, p *gemm.Product, list []choice) (n int) {
	for _, c := range list {
		kernel := t.nameOf(p, c)
		if t.outside != nil && t.foreign(p, c) && !t.table.Passed(product, kernel) && !t.table.Ended(product, kernel) {
			n++
		}
	}
	return n
}

// foreign says whether a choice is a library's.
func (t *tuner) foreign(p *gemm.Product, c choice) bool {
	switch {
	case c.way != t.e.byRule:
		return c.way.foreign || c.way == t.e.byLibrary
	case t.e.builtIn(p):
		return false
	}
	return t.e.info.Name != library.Builtin && t.e.info.Name != library.Plain
}

func init() { dynlib.Serve(servant, serveProducts) }

// serveProducts is the other process. It says that it is ready, and answers each attempt.
func serveProducts(args []string, questions io.Reader, answers io.Writer) int {
	if err := computeProducts(args, bufio.NewReader(questions), json.NewEncoder(answers)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func computeProducts(args []string, questions io.Reader, answers *json.Encoder) error {
	var o outside
	if len(args) != 1 {
		return fmt.Errorf("kernel: %d arguments, want 1", len(args))
	}
	if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
		return err
	}
	e, err := New(Options{Backend: library.Builtin, Threads: o.Threads, Precision: o.Precision})
	if err != nil {
		return err
	}
	var libraries []library.Loaded
	for _, l := range o.Libraries {
		x, err := library.Open(l.Name, l.File)
		if err != nil {
			return err
		}
		libraries = append(libraries, x)
	}
	float, half := e.ways(libraries, false)
	if err := answers.Encode(struct{}{}); err != nil {
		return err
	}
	var values operandValues
	for d := json.NewDecoder(questions); ; {
		var a attempt
		if err := d.Decode(&a); errors.Is(err, io.EOF) { // the one that asks has ended
			return nil
		} else if err != nil {
			return err
		}
		list := float
		if a.Half {
			list = half
		}
		for _, w := range list {
			if w.name == a.Library {
				p := values.product(a)
				compute(e, &p, choice{w, a.Side})
			}
		}
		if err := answers.Encode(struct{}{}); err != nil {
			return err
		}
	}
}

// compute multiplies. A library that refuses a product, which is a panic, does so again where it is measured.
func compute(e *Engine, p *gemm.Product, c choice) {
	defer func() { _ = recover() }()
	e.multiply(p, c)
}

// operandValues are random values of which operands are made: A and B begin with the same.
type operandValues struct {
	float, c []float32
	half     []uint16
}

// product returns the product of an attempt, without what this program does after any product.
func (v *operandValues) product(a attempt) gemm.Product {
	k := a.Key
	p := gemm.Product{TransA: k.TransA, TransB: k.TransB, M: k.M, N: k.N, K: k.K, Alpha: a.Alpha, Beta: a.Beta,
		BF16: k.BF16, LDC: k.LDC}
	rows, columns := p.StoredA()
	p.A = v.matrix((rows-1)*k.LDA+columns, k.LDA, k.HalfA)
	rows, columns = p.StoredB()
	p.B = v.matrix((rows-1)*k.LDB+columns, k.LDB, k.HalfB)
	if k.Bias {
		p.Bias = v.matrix(k.N, k.N, false).F32
	}
	if n := resultSize(&p); len(v.c) < n {
		v.c = make([]float32, n)
	}
	p.C = v.c[:resultSize(&p)]
	return p
}

// matrix returns n values with a stride.
func (v *operandValues) matrix(n, stride int, half bool) gemm.Matrix {
	if len(v.float) < n {
		v.float = library.Values(n, 1)
	}
	if !half {
		return gemm.Matrix{F32: v.float[:n], LD: stride}
	}
	if len(v.half) < n {
		v.half = make([]uint16, n)
		vector.ToBF16(v.half, v.float[:n])
	}
	return gemm.Matrix{BF16: v.half[:n], LD: stride}
}
