package gemm

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
)

func TestZZ(t *testing.T) {
	tl := New()
	w := tl.Work.Take()
	var q Queue
	for _, c := range [][5]int{{14, 32, 192, 64, 64}, {14, 32, 384, 128, 128}, {14, 64, 192, 64, 64}, {56, 64, 192, 64, 64}, {14, 256, 384, 256, 256}, {7, 256, 384, 512, 512}, {7, 32, 384, 512, 512}, {8, 256, 384, 512, 512}, {14, 256, 384, 512, 512}, {14, 256, 384, 528, 256}, {14, 256, 384, 400, 256}, {12, 256, 384, 400, 256},{13, 256, 384, 400, 256}} {
		m, n, k, row, ldc := c[0], c[1], c[2], c[3], c[4]
		a, b, cc := make([]float32, m*row+k), make([]float32, n*k), make([]float32, m*max(ldc, n))
		p := PanelProduct{M: m, N: n, Terms: k, Alpha: 1, Add: true, LDC: max(ldc, n), C: cc}
		_, h := tl.Heights(m)
		p.A = RowsOperand{At: unsafe.Pointer(&a[0]), Row: row * 4, K: 4, Tile: h * row * 4}
		p.B = PanelsOperand{At: unsafe.Pointer(&b[0]), K: 128, Panel: k * 128}
		s := kerneltest.Best(func() {
			for range 200 {
				tl.MultiplyPanels(w, &p, &q)
			}
		})
		fmt.Println(c, 2*200*float64(m*n*k)/s/1e9)
	}
}
