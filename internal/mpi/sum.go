package mpi

import "github.com/geoalign/geoalign/internal/kernel/vector"

// block is how many values are added up at a time, which stay in the first-level cache.
const block = 2048

// sum adds up x over the ranks.
func (t *thread) sum(x []float32) error { return t.reduce(x, 4) }

// sumHalf is sum with values and sums in bfloat16 on their way.
func (t *thread) sumHalf(x []float32) error { return t.reduce(x, 2) }

// reduce sums x in values of width bytes. A round has two exchanges; the first of the next round is
// under way while one is added up, and the second of the last while the next is waited for.
func (t *thread) reduce(x []float32, width int) error {
	size := t.share / width * t.ranks
	rounds := (len(x) + size - 1) / size
	part := func(i int) []float32 { return x[i*size : min((i+1)*size, len(x))] }
	for i := range rounds + 2 {
		if rounds == 0 {
			break
		}
		if i < rounds {
			if err := t.scatter(&t.rounds[i%2], part(i), width); err != nil {
				return err
			}
		}
		if i >= 1 && i <= rounds {
			if err := t.addUp(&t.rounds[(i-1)%2], part(i-1), width); err != nil {
				return err
			}
		}
		if i >= 2 {
			if err := t.collect(&t.rounds[i%2], part(i-2), width); err != nil {
				return err
			}
		}
	}
	return nil
}

// cut is where the share of a rank begins in n values.
func (t *thread) cut(n, rank int) int { return n * rank / t.ranks }

// scatter begins to send each rank its share of x.
func (t *thread) scatter(r *round, x []float32, width int) error {
	if width == 4 {
		copy(view[float32](r.send), x)
	} else {
		vector.ToBF16(view[uint16](r.send)[:len(x)], x)
	}
	own := t.cut(len(x), t.rank+1) - t.cut(len(x), t.rank)
	for k := range t.ranks {
		lo, hi := t.cut(len(x), k), t.cut(len(x), k+1)
		r.to.set(k, lo*width, (hi-lo)*width)
		r.from.set(k, k*t.share, own*width)
	}
	// What is one's own stays where it is.
	r.to.counts[t.rank], r.from.counts[t.rank] = 0, 0
	return t.api.alltoallv(r.send, r.to, r.recv, r.from, &r.moved)
}

// set sets the part of a rank.
func (p parts) set(rank, place, count int) {
	p.places[rank], p.counts[rank] = int32(place), int32(count)
}

// addUp waits for this rank's share from all, adds it up and begins to send the sum to all.
func (t *thread) addUp(r *round, x []float32, width int) error {
	if err := t.await(&r.moved); err != nil {
		return err
	}
	lo, hi := t.cut(len(x), t.rank)*width, t.cut(len(x), t.rank+1)*width
	if width == 4 {
		t.add(view[float32](r.all[lo:hi]), r, lo)
	} else {
		t.addHalf(view[uint16](r.all[lo:hi]), r, lo)
	}
	for k := range t.ranks {
		from, to := t.cut(len(x), k)*width, t.cut(len(x), k+1)*width
		r.of.set(k, from, to-from)
	}
	return t.api.allgatherv(r.all, r.of.counts, r.of.places, &r.spread)
}

// collect waits for the sums.
func (t *thread) collect(r *round, x []float32, width int) error {
	if err := t.await(&r.spread); err != nil {
		return err
	}
	if width == 4 {
		copy(x, view[float32](r.all))
	} else {
		vector.FromBF16(x, view[uint16](r.all)[:len(x)])
	}
	return nil
}

// piece is what a rank gives of this rank's share, whose own lies at byte own of send.
func (t *thread) piece(r *round, rank, own int) []byte {
	if rank == t.rank {
		return r.send[own:]
	}
	return r.recv[rank*t.share:]
}

// add sets dst to the sum of the pieces, in the order of the ranks.
func (t *thread) add(dst []float32, r *round, own int) {
	for lo := 0; lo < len(dst); lo += block {
		hi := min(lo+block, len(dst))
		copy(dst[lo:hi], view[float32](t.piece(r, 0, own))[lo:hi])
		for k := 1; k < t.ranks; k++ {
			vector.Add(dst[lo:hi], dst[lo:hi], view[float32](t.piece(r, k, own))[lo:hi])
		}
	}
}

// addHalf is add of values in bfloat16, which are added up in float32.
func (t *thread) addHalf(dst []uint16, r *round, own int) {
	for lo := 0; lo < len(dst); lo += block {
		hi := min(lo+block, len(dst))
		total, one := t.half[:hi-lo], t.half[block:][:hi-lo]
		vector.FromBF16(total, view[uint16](t.piece(r, 0, own))[lo:hi])
		for k := 1; k < t.ranks; k++ {
			vector.FromBF16(one, view[uint16](t.piece(r, k, own))[lo:hi])
			vector.Add(total, total, one)
		}
		vector.ToBF16(dst[lo:hi], total)
	}
}

// sumShare sets own to the sum of the shares of x that are this rank's.
func (t *thread) sumShare(own, x []float32) error {
	r := &t.rounds[0]
	for lo := 0; lo < len(own); lo += t.share / 4 {
		hi := min(lo+t.share/4, len(own))
		for k := range t.ranks {
			copy(view[float32](r.send[k*t.share:]), x[k*len(own):][lo:hi])
			r.to.set(k, k*t.share, (hi-lo)*4)
			r.from.set(k, k*t.share, (hi-lo)*4)
		}
		r.to.counts[t.rank], r.from.counts[t.rank] = 0, 0
		if err := t.api.alltoallv(r.send, r.to, r.recv, r.from, &r.moved); err != nil {
			return err
		}
		if err := t.await(&r.moved); err != nil {
			return err
		}
		t.add(own[lo:hi], r, t.rank*t.share)
	}
	return nil
}
