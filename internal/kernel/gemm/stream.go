//go:build amd64 || arm64

package gemm

import "unsafe"

// stream is what is read soon, of which tiles ask for a row each while they multiply: for a line at each term, at the
// same one again until the next word is in another. A call between tiles that asks for as much took 3 to 6 % of a
// product.
type stream struct {
	x        Matrix
	at, rows int // first value and number of rows
}

// askForGroup plans what so many tiles ask for: the next group of an A that is not transposed.
func (b *block) askForGroup(tiles int) {
	p, next := b.p, b.i+b.mb
	b.next = stream{x: p.A, at: next*p.A.LD + b.k, rows: max(0, min(b.mb, p.M-next))}
	for ; b.next.rows > tiles; b.next.pass() { // what tiles are too few for
		gemmPrefetch(p.A.first(b.next.at), 0, (b.kb*WordSize+CacheLine-1)/CacheLine, 1)
	}
}

// ask sets what the next tile asks for.
func (b *block) ask(w *TileWork) {
	if w.args.next = 0; b.next.rows > 0 {
		w.args.next = uintptr(unsafe.Pointer(b.next.x.first(b.next.at)))
		b.next.pass()
	}
}

// pass goes on to the next row.
func (s *stream) pass() {
	s.at += s.x.LD
	s.rows--
}
