package search

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/internal/rng"
)

// BuildOptions say what index to build. Zero values mean what they say.
type BuildOptions struct {
	Metric Metric
	// Codes of the rows; empty: Bytes.
	Codes Codes
	// Cells is the number of cells; 0: twice the square root of the rows.
	Cells int
	// Recall is the share of the K nearest rows that a search is to find; 0: 0.95. The index
	// looks at as few cells as give it, of all if none do.
	Recall float64
	// K is the number of neighbours that recall is measured with; 0: 10, or what the pool has.
	K int
	// Queries (Q, D) are those that recall is measured with. Nil: 500 rows of the pool, each of
	// which does not find itself. Give queries where they are of another kind than the pool,
	// such as captions that search images: for these, rows of the pool promise too much.
	Queries []float32
	// Seed of the rows that cells are made of and recall is measured with.
	Seed uint64
	// Progress is called now and then with a stage of the build and its finished parts; nil: by
	// nobody.
	Progress func(stage string, done, of int)
}

// Defaults and sizes of a build.
const (
	// DefaultRecall is the share of the nearest rows that an index finds where BuildOptions or a search asks for none.
	DefaultRecall = 0.95
	defaultK      = 10
	sampleQueries = 500
	cellSample    = 64 // rows of a cell that its centre is made of
	maxCells      = 1 << 16
)

// Build makes an index of a pool: it reads the pool three times and keeps D+8 bytes of each row.
// K-means and the assignment of rows to cells take most of the time, about
// 2*N*C*D operations with C cells. The same seed gives the same index on any number of threads.
//
// It fails as Exact does for pools and queries that cannot be searched, and when ctx ends.
func Build(ctx context.Context, e *compute.Engine, pool Pool, o BuildOptions) (*Index, error) {
	p, err := newPoints(pool, o.Metric)
	if err != nil {
		return nil, err
	}
	if err := o.setDefaults(pool.Rows()); err != nil {
		return nil, err
	}
	var before identity.Stamp
	if files, ok := pool.(stamped); ok {
		if _, before, err = files.Stamp(); err != nil {
			return nil, err
		}
	}
	x := &Index{points: p, width: codeWidth(pool.Width())}
	x.header = header{Version: o.version(), Codes: o.stored(), Rows: pool.Rows(), Width: pool.Width(),
		Metric: o.Metric, Cells: o.Cells, Seed: o.Seed}
	b := &builder{Index: x, ctx: ctx, e: e, o: o}
	for _, do := range []func() error{b.cluster, b.assign, b.encode, b.calibrate} {
		if err := do(); err != nil {
			return nil, err
		}
	}
	x.noteRows(before)
	return x, nil
}

// stored are the codes as a header names them.
func (o *BuildOptions) stored() Codes {
	if o.Codes == Bits {
		return Bits
	}
	return ""
}

// version is that of the file of such an index.
func (o *BuildOptions) version() int {
	if o.Codes == Bits {
		return bitsVersion
	}
	return version
}

// setDefaults fills in what is zero and checks the rest.
func (o *BuildOptions) setDefaults(rows int) error {
	if o.Cells == 0 {
		o.Cells = min(int(2*math.Sqrt(float64(rows))), maxCells)
	}
	o.Cells = min(o.Cells, rows)
	if o.Recall == 0 {
		o.Recall = DefaultRecall
	}
	most := rows
	if o.Queries == nil {
		most = rows - 1
	}
	if o.K == 0 {
		o.K = min(defaultK, most)
	}
	if o.Progress == nil {
		o.Progress = func(string, int, int) {}
	}
	switch {
	case o.Codes != "" && o.Codes != Bytes && o.Codes != Bits:
		return fmt.Errorf("search: no codes %q: choose bytes or bits", string(o.Codes))
	case rows < 2 && o.Queries == nil:
		return fmt.Errorf("search: an index of one row has no other to measure recall with: give queries, or use Exact")
	case o.Cells < 1 || o.Cells > maxCells:
		return fmt.Errorf("search: cells must be in [1, %d] (got %d): 0 chooses", maxCells, o.Cells)
	case !(o.Recall > 0 && o.Recall <= 1):
		return fmt.Errorf("search: recall must be above 0 and at most 1 (got %v)", o.Recall)
	case o.K < 1 || o.K > most:
		return fmt.Errorf("search: recall cannot be measured with k = %d neighbours among %d rows: choose 1 to %d", o.K,
			rows, most)
	}
	return nil
}

// builder is a build in progress.
type builder struct {
	*Index
	ctx   context.Context
	e     *compute.Engine
	o     BuildOptions
	cells *kmeans
	owner []int32 // (N) cell of each row
	place []int32 // (N) where each row is in the index
}

// stage returns the progress of a stage.
func (b *builder) stage(name string) func(done, of int) {
	return func(done, of int) { b.o.Progress(name, done, of) }
}

// draw returns one row at random of each of count equal stretches of n.
func draw(r *rand.Rand, count, n int) []int32 {
	out := make([]int32, count)
	for i := range out {
		lo, hi := int(int64(i)*int64(n)/int64(count)), int(int64(i+1)*int64(n)/int64(count))
		out[i] = int32(lo + r.IntN(hi-lo))
	}
	return out
}

// cluster makes the centres from a sample of rows.
func (b *builder) cluster() error {
	d := b.header.Width
	r := rng.New(b.o.Seed, rng.KMeans, 0)
	sample := draw(r, min(cellSample*b.o.Cells, b.header.Rows), b.header.Rows)
	x := make([]float32, len(sample)*d)
	err := each(b.ctx, b.e, len(sample), nil,
		func(_, i int) error { return b.read(int(sample[i]), 1, x[i*d:(i+1)*d], nil) })
	if err != nil {
		return err
	}
	b.cells = newKMeans(b.e, x, d, b.o.Cells)
	progress := b.stage("cells")
	if err := b.cells.train(b.ctx, x, r, func(done int) { progress(done, iterations) }); err != nil {
		return err
	}
	b.centres = b.cells.centres
	b.setCoarse()
	return nil
}

// assign finds the cell of each row and the places of the rows.
func (b *builder) assign() error {
	n, d, chunk := b.header.Rows, b.header.Width, b.cells.chunk
	b.owner = make([]int32, n)
	blocks := make([][]float32, b.e.Threads())
	err := each(b.ctx, b.e, (n+chunk-1)/chunk, b.stage("assign"), func(worker, part int) error {
		if blocks[worker] == nil {
			blocks[worker] = make([]float32, chunk*d)
		}
		from, to := part*chunk, min((part+1)*chunk, n)
		x := blocks[worker][:(to-from)*d]
		if err := b.read(from, to-from, x, nil); err != nil {
			return err
		}
		b.cells.assign(worker, x, b.owner[from:to])
		return nil
	})
	if err != nil {
		return err
	}
	b.starts = make([]int32, b.o.Cells+1)
	for _, c := range b.owner {
		b.starts[c+1]++
	}
	for c := range b.o.Cells {
		b.starts[c+1] += b.starts[c]
	}
	next := append([]int32(nil), b.starts...)
	b.rows, b.place = make([]int32, n), make([]int32, n)
	for i, c := range b.owner {
		b.place[i] = next[c]
		b.rows[next[c]] = int32(i)
		next[c]++
	}
	return nil
}

// encode codes the rows, and sums them as it reads them.
func (b *builder) encode() error {
	n, d, w := b.header.Rows, b.header.Width, b.width
	b.scales, b.sums = make([]float32, n), make([]identity.Sum, blocks(n))
	if b.header.bits() {
		b.bits = make([]uint8, n*bitWidth(d))
	} else {
		b.codes = make([]int8, n*w)
	}
	if b.metric == L2 {
		b.half = make([]float32, n)
	}
	halves := make([][chunkRows]float32, threads(b.e))
	err := eachBlock(b.ctx, b.e, b.pool, b.sums, b.stage("encode"), func(worker, from, rows int, x []float32) error {
		half := halves[worker][:]
		if err := b.placeAll(from, rows, x, half); err != nil {
			return err
		}
		for i := range rows {
			at, c := int(b.place[from+i]), int(b.owner[from+i])
			row := x[i*d : (i+1)*d]
			vector.Sub(row, row, b.centres[c*d:(c+1)*d])
			if b.bits != nil {
				b.turn.apply(row)
				b.scales[at] = codeBits(b.bits[at*bitWidth(d):][:bitWidth(d)], row)
			} else {
				b.scales[at] = code(b.codes[at*w:][:w], row)
			}
			if b.half != nil {
				b.half[at] = half[i]
			}
		}
		return nil
	})
	b.header.Fingerprint = fingerprintOf(n, d, b.sums)
	return err
}
