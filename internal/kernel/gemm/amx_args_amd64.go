package gemm

import "unsafe"

// amxArgs is what the functions on tiles read; the generator in ../gen/gemm knows the offsets.
type amxArgs struct {
	config    unsafe.Pointer // 0
	a         unsafe.Pointer // 8
	aRow      int            // 16: from one row of a tile to the next, in bytes
	aTile     int            // 24: from one tile of rows to the next
	aStep     int            // 32: from one tile along k to the next
	aPanel    int            // 40: from the rows of a panel to those of the next one
	steps     int            // 48: tiles along k, at least 1
	b         unsafe.Pointer // 56
	bRow      int            // 64
	bTile     int            // 72: from one tile of columns to the next
	bStep     int            // 80
	bPanel    int            // 88
	sums      unsafe.Pointer // 96
	row       int            // 104: of the sums, in bytes
	add       int            // 112: not 0 to add to the sums
	panels    int            // 120: at least 1; counted down
	step      int            // 128: from the sums of a panel to those of the next
	end       int            // 136: what is made of the sums
	out       unsafe.Pointer // 144: that
	outRow    int            // 152
	outStep   int            // 160: from that of a panel to that of the next
	rows      int            // 168
	bias      unsafe.Pointer // 176: added to each row, or nil
	mask      uint64         // 184: one bit for each column
	alpha     float32        // 192: what the sums are multiplied by
	_         float32
	activated int // 200: from out to where its activation goes, in bytes
	// 208: b, sums, out and bias of the panel in progress of amxGELU, which are no pointers once they are beyond the
	// last one
	now [4]uintptr
}

// What is made of the sums of a panel.
const (
	endSums   = iota // nothing
	endSet           // float32
	endAdd           // added to float32
	endHalves        // bfloat16
	endGELU          // that, and GELU of it as bfloat16: of two tiles of rows and columns
)

// tileConfig is the operand of LDTILECFG: the shapes of the eight tiles.
type tileConfig struct {
	palette, start byte
	_              [14]byte
	bytes          [16]uint16 // of a row
	rows           [16]byte
}

// run computes the panels of w.args, each of so many rows and columns.
func (w *AMXWork) run(rows, columns int) {
	w.config.set(rows, columns)
	w.args.rows, w.args.mask = rows, 1<<columns-1
	args := (*byte)(unsafe.Pointer(&w.args))
	switch {
	case w.args.end == endGELU:
		amxGELU(args)
	case rows > tileRows && columns > tileRows:
		amxProduct2x2(args)
	case rows > tileRows:
		amxProduct2x1(args)
	case columns > tileRows:
		amxProduct1x2(args)
	default:
		amxProduct1x1(args)
	}
}

// set sets the shapes of the tiles for rows and columns of C.
func (c *tileConfig) set(rows, columns int) {
	c.palette = 1
	r := [2]int{min(rows, tileRows), max(rows-tileRows, 1)}
	n := [2]int{min(columns, tileRows), max(columns-tileRows, 1)}
	for i := range 2 {
		for j := range 2 {
			c.rows[2*i+j], c.bytes[2*i+j] = byte(r[i]), uint16(n[j]*WordSize)
		}
		c.rows[4+i], c.bytes[4+i] = byte(r[i]), tileRows*WordSize
		c.rows[6+i], c.bytes[6+i] = tileRows, uint16(n[i]*WordSize)
	}
}
