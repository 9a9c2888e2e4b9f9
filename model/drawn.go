package model

// drawn takes the share of this process of what is drawn for each sample of the global batch.
type drawn struct {
	rank, ranks int
	stacks      int // of the batch's samples, each of which every rank has an equal share of
	all         []int32
}

// drawnOf is for n samples, the batch or several stacks of it.
func (b *builder) drawnOf(n int) *drawn {
	return &drawn{rank: b.o.Group.Rank(), ranks: b.o.Group.Size(), stacks: max(1, n/b.s.Rows)}
}

// take sets dst, an equal part for each of n samples, to those of what draw gives for n*ranks samples. Its values are rows, of which a
// sample has so many, or with 0 anything.
func (d *drawn) take(dst []int32, n, rows int, draw func(all []int32)) {
	if d.ranks == 1 {
		draw(dst)
		return
	}
	if d.all == nil {
		d.all = make([]int32, len(dst)*d.ranks)
	}
	draw(d.all)
	part, own := len(dst)/n, n/d.stacks
	for i := range n {
		at := i/own*own*d.ranks + d.rank*own + i%own
		for k, v := range d.all[at*part:][:part] {
			dst[i*part+k] = v - int32((at-i)*rows)
		}
	}
}
