package cuda

import "github.com/geoalign/geoalign/internal/exec"

// Room gives parts of the scratch memory of a step away. Scratch returns the same memory to everyone who asks, so that
// a step with Factors lays what it needs besides behind them:
//
//	room := cuda.NewRoom(c, parts...)
//	sums := room.Take(4 * rows)
//	base := cuda.Scratch(c, room.Bytes) // before NewFactors: the memory does not change then
//	f := cuda.NewFactors(c, parts...)
//
// The values lie at base + sums.
type Room struct{ Bytes int64 }

// NewRoom begins behind the parts of NewFactors.
func NewRoom(c *exec.DeviceCall, parts ...Part) *Room {
	r := &Room{}
	for _, p := range parts {
		if c.In[p.In].Type != p.Type || p.Limit > 0 || p.Type == exec.BFloat16 {
			r.Take(int64(p.Rows) * int64((p.Cols+rowAlign-1)/rowAlign*rowAlign) * int64(size(p.Type)))
		}
	}
	return r
}

// Take returns where bytes begin, at a multiple of 256.
func (r *Room) Take(bytes int64) Pointer {
	at := r.Bytes
	r.Bytes += (bytes + 255) / 256 * 256
	return Pointer(at)
}
