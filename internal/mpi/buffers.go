package mpi

// roundBytes is about how much of a vector an exchange takes in one round. Smaller rounds cost
// more latency, larger ones fall out of the caches.
const roundBytes = 4 << 20

// buffers is the memory that exchanges pass through. Its size depends on the number of ranks alone.
type buffers struct {
	share  int      // bytes that a rank gets of a round, a multiple of 64
	rounds [2]round // the one being added up, and the next
	notes  []byte
	asked  request   // for the notes
	asking bool      // they are under way
	half   []float32 // a block of values in bfloat16
}

// round is the memory of one round, of share bytes for each rank.
type round struct {
	send, recv []byte  // of the first exchange
	all        []byte  // of the second: the sums, or what is gathered
	to, from   parts   // of the first
	of         parts   // of the second
	moved      request // the first
	spread     request // the second
}

// make allocates the buffers for rounds of about so many bytes.
func (b *buffers) make(a *api, ranks, round int) (err error) {
	b.share = max(round/ranks, 4096) &^ 63
	alloc := func(n int) (m []byte) {
		if err == nil {
			m, err = a.alloc(n)
		}
		return m
	}
	b.notes = alloc(ranks * noteBytes)
	for i := range b.rounds {
		r := &b.rounds[i]
		r.send, r.recv, r.all = alloc(ranks*b.share), alloc(ranks*b.share), alloc(ranks*b.share)
		for _, p := range []*parts{&r.to, &r.from, &r.of} {
			p.counts, p.places = make([]int32, ranks), make([]int32, ranks)
		}
	}
	b.half = make([]float32, 2*block)
	return err
}
