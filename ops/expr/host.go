package expr

import (
	"slices"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/ops/op"
)

// piece is how many elements intermediate results have at a time: some of them fit into the first cache.
const piece = 1024

// kind says what a place is.
type kind uint8

const (
	operandAt kind = iota
	numberAt       // the same in all elements of a row
	registerAt
	output
)

// place is where an instruction finds or leaves values.
type place struct {
	kind kind
	i    int
}

// instruction sets to to a function of places: no function: to the first of them, or the diagonal without any.
type instruction struct {
	of   *function
	args []place
	to   place
}

// program computes the elements of a row, or of a layout of one axis, piece by piece.
type program struct {
	rows, inner, length int // rows are outer x inner, of length elements
	views               []view
	dear                bool

	constants []float32 // numbers that are given; those that are computed lie behind them
	numbers   int
	once      []instruction // those of numbers, for each row
	each      []instruction
	registers int

	places map[string]place // of values
	last   map[int]int      // by register: the last instruction that reads it
}

// view is View by outer and inner rows and along a row.
type view struct{ from, outer, inner, along int }

// three returns the axes of a layout as three, and its views along them.
func (l Layout) three() (axes [3]int, views []view) {
	axes = [3]int{1, 1, l.Shape.TotalSize()}
	if l.Axes != nil {
		axes = [3]int{1, 1, 1}
		copy(axes[3-len(l.Axes):], l.Axes)
	}
	for _, v := range l.Views {
		strides := [3]int{axes[1] * axes[2], axes[2], 1}
		if v.Strides != nil {
			strides = [3]int{}
			copy(strides[3-len(v.Strides):], v.Strides)
		}
		views = append(views, view{v.From, strides[0], strides[1], strides[2]})
	}
	return axes, views
}

// compile makes the program of a value.
func compile(v *Value, l Layout) *program {
	p := &program{places: map[string]place{}, last: map[int]int{}}
	var axes [3]int
	axes, p.views = l.three()
	p.rows, p.inner, p.length = axes[0]*axes[1], axes[1], axes[2]
	v.walk(func(u *Value) {
		if u.of == nil && u.leaf == constant {
			p.place(u)
		}
	})
	p.numbers = len(p.constants)
	to := p.place(v)
	if n := len(p.each); to.kind == registerAt && n > 0 && p.each[n-1].to == to {
		p.each[n-1].to = place{kind: output}
	} else {
		p.each = append(p.each, instruction{args: []place{to}, to: place{kind: output}})
	}
	p.allocate()
	return p
}

// place returns where a value is found, behind the instructions that it takes.
func (p *program) place(v *Value) (at place) {
	key := v.String()
	if at, ok := p.places[key]; ok {
		return at
	}
	switch {
	case v.of != nil:
		at = p.call(v)
	case v.leaf == constant:
		at = place{numberAt, len(p.constants)}
		p.constants = append(p.constants, v.number)
	case v.leaf == diagonal:
		at = p.register(instruction{})
	case p.views[v.leaf].along == 0:
		at = p.number(instruction{args: []place{{operandAt, int(v.leaf)}}})
	default:
		at = place{operandAt, int(v.leaf)}
	}
	p.places[key] = at
	return at
}

// call adds the instruction of a function.
func (p *program) call(v *Value) place {
	do := instruction{of: v.of}
	numbers := true
	for _, a := range v.args {
		at := p.place(a)
		do.args, numbers = append(do.args, at), numbers && at.kind == numberAt
	}
	if numbers {
		return p.number(do)
	}
	p.dear = p.dear || v.of.dear
	if v.of.commutes && do.args[1].kind == numberAt {
		do.args[0], do.args[1] = do.args[1], do.args[0]
	}
	for i, at := range do.args {
		if at.kind == numberAt && (i > 0 || v.of.scaled == nil) {
			do.args[i] = p.register(instruction{args: []place{at}})
		}
	}
	return p.register(do)
}

func (p *program) number(do instruction) place {
	do.to = place{numberAt, p.numbers}
	p.numbers++
	p.once = append(p.once, do)
	return do.to
}

func (p *program) register(do instruction) place {
	do.to = place{registerAt, p.registers}
	p.registers++
	p.each = append(p.each, do)
	return do.to
}

// allocate has registers that are not read again be written again.
func (p *program) allocate() {
	for i, do := range p.each {
		for _, at := range do.args {
			if at.kind == registerAt {
				p.last[at.i] = i
			}
		}
	}
	var free []int
	now := map[int]int{}
	p.registers = 0
	for i := range p.each {
		do := &p.each[i]
		for k, at := range do.args {
			if at.kind != registerAt {
				continue
			}
			do.args[k].i = now[at.i]
			if p.last[at.i] == i && !slices.Contains(free, now[at.i]) {
				free = append(free, now[at.i])
			}
		}
		if do.to.kind != registerAt {
			continue
		}
		if len(free) == 0 {
			free = append(free, p.registers)
			p.registers++
		}
		now[do.to.i] = free[len(free)-1]
		do.to.i, free = free[len(free)-1], free[:len(free)-1]
	}
}

// room is how many numbers of working memory a thread has.
func (p *program) room() int { return p.numbers + piece*p.registers }

// prepare makes the step.
func (p *program) prepare(c *exec.Call) (exec.Step, error) {
	if p.rows == 1 {
		grain := op.ElementGrain
		if p.dear {
			grain /= 4
		}
		return c.For(p.length, grain, func(worker, lo, hi int) { p.run(c, worker, 0, 1, lo, hi) })
	}
	return c.For(p.rows, op.RowGrain(p.length), func(worker, lo, hi int) { p.run(c, worker, lo, hi, 0, p.length) })
}

// run computes elements from to to of some rows.
func (p *program) run(c *exec.Call, worker, row, rows, from, to int) {
	r := run{program: p, c: c, room: c.Scratch[worker*p.room():][:p.room()]}
	copy(r.room, p.constants)
	for ; row < rows; row++ {
		r.row, r.at, r.n = row, 0, 1
		for _, do := range p.once {
			r.compute(do)
		}
		most := piece
		if p.registers == 0 {
			most = to - from
		}
		for r.at = from; r.at < to; r.at += r.n {
			r.n = min(most, to-r.at)
			for _, do := range p.each {
				r.do(do)
			}
		}
	}
}

// run is at n elements of a row.
type run struct {
	*program
	c          *exec.Call
	room       []float32
	row, at, n int
}

// slice returns the values of a place.
func (r *run) slice(at place) []float32 {
	switch at.kind {
	case operandAt:
		v := r.views[at.i]
		from := v.from + r.row/r.inner*v.outer + r.row%r.inner*v.inner + r.at*v.along
		return r.c.In[at.i].F32[from : from+r.n]
	case registerAt:
		return r.room[r.numbers+at.i*piece:][:r.n]
	case output:
		return r.c.Out.F32[r.row*r.length+r.at:][:r.n]
	}
	return r.room[at.i : at.i+1]
}

// compute runs an instruction of numbers.
func (r *run) compute(do instruction) {
	dst := r.slice(do.to)
	if do.of != nil && do.of.number != nil {
		dst[0] = float32(do.of.number(float64(r.slice(do.args[0])[0])))
		return
	}
	r.do(do)
}

// do runs one of elements.
func (r *run) do(do instruction) {
	dst := r.slice(do.to)
	var a [3][]float32
	for i, at := range do.args {
		a[i] = r.slice(at)
	}
	switch {
	case len(do.args) == 0:
		clear(dst)
		if i := r.row%r.inner - r.at; i >= 0 && i < r.n {
			dst[i] = 1
		}
	case do.of == nil && do.args[0].kind == numberAt:
		vector.Fill(dst, a[0][0])
	case do.of == nil:
		copy(dst, a[0])
	case do.args[0].kind == numberAt && do.to.kind != numberAt:
		do.of.scaled(dst, a[0][0], a[1], a[2])
	case do.of.slices != nil:
		do.of.slices(dst, a[0], a[1], a[2])
	default:
		for i, x := range a[0] {
			dst[i] = float32(do.of.number(float64(x)))
		}
	}
}
