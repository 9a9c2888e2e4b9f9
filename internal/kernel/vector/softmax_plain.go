package vector

import "math"

// The plain twins of attention_rows.go.

func plainSoftmaxRows(s []float32, stride, n int, bits []int32, words int, scale float32, lse []float32) {
	for i := range lse {
		row := s[i*stride:][:n]
		top := float32(math.Inf(-1))
		for _, v := range row {
			top = max(top, v)
		}
		sum := plainExpSum(row, row, top)
		plainScale(row, 1/sum, row)
		if bits != nil {
			plainDropout(row, row, bits[i*words:], scale)
		}
		lse[i] = top + float32(math.Log(float64(sum)))
	}
}

func plainExpRows(p, dropped []float32, stride, n int, lse []float32, bits []int32, words int, scale float32) {
	for i, l := range lse {
		row := p[i*stride:][:n]
		plainSoftmaxDiff(row, row, l, 1)
		if bits != nil {
			plainDropout(dropped[i*stride:][:n], row, bits[i*words:], scale)
		}
	}
}

func plainSoftmaxGradRows(ds, p, dropped []float32, stride, rows, n int) {
	for i := range rows {
		g, probs, kept := ds[i*stride:][:n], p[i*stride:][:n], dropped[i*stride:][:n]
		plainMul(g, g, kept)
		plainAxpy(g, -plainSum(g), probs)
	}
}

func plainDotRows(dst []float32, step int, x []float32, stride, rows int, y []float32, scale float32) {
	for i := range rows {
		dst[i*step] = scale * plainDot(x[i*stride:][:len(y)], y)
	}
}
