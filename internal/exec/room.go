package exec

import "github.com/geoalign/geoalign/internal/memory"

// Room is memory that several machines on the host work in, of which one runs at a time: the results of one are gone
// when another runs. It grows with the machines that are compiled, and those from before keep the memory that they have.
type Room struct{ arena, scratch []float32 }

// Bytes returns what the room holds.
func (r *Room) Bytes() int64 { return 4 * int64(len(r.arena)+len(r.scratch)) }

// take returns n floats, which other machines use too.
func (r *Room) take(of *[]float32, n int) []float32 {
	if len(*of) < n {
		*of = memory.Floats(max(n, 5*len(*of)/4))
	}
	return (*of)[:n:n]
}
