package gemm

import (
	"testing"
	"unsafe"
)

// Functions on tiles leave the pointers of their arguments as they are: one that has moved beyond its array may be that of freed memory, which the
// garbage collector ends the program for.
func TestAMXLeavesPointers(t *testing.T) {
	x := NewAMX()
	if x == nil {
		t.Skip("this processor has no AMX, or the system does not allow it")
	}
	const panels = 3
	w := x.Work.Take()
	defer x.Work.Give(w)
	out, activated, bias := make([]uint16, amxPair*amxPair*panels), make([]uint16, amxPair*amxPair*panels), make([]float32, amxPair*panels)
	for _, end := range []int{endSums, endHalves, endGELU} {
		w.args = amxArgs{
			config: unsafe.Pointer(&w.config), steps: 1, alpha: 1, end: end, panels: panels,
			a: unsafe.Pointer(&w.group[0]), aRow: CacheLine, aTile: amxTile, aStep: amxTile,
			b: unsafe.Pointer(&w.block[0]), bRow: CacheLine, bTile: amxTile, bStep: amxTile, bPanel: 2 * amxTile,
			sums: unsafe.Pointer(&w.strip[0]), row: 2 * tileRows * WordSize,
			out: unsafe.Pointer(&out[0]), outRow: amxPair * panels * halfSize, outStep: amxPair * halfSize,
			bias: unsafe.Pointer(&bias[0]), activated: int(uintptr(unsafe.Pointer(&activated[0])) - uintptr(unsafe.Pointer(&out[0]))),
		}
		before := w.args
		w.run(amxPair, amxPair)
		if a := w.args; a.a != before.a || a.b != before.b || a.sums != before.sums || a.out != before.out || a.bias != before.bias {
			t.Errorf("end %d: a pointer has moved", end)
		}
	}
	w.args = amxArgs{}
}
