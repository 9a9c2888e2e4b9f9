package pixel

// Luma is the brightness of a colour by ITU-R 601-2, as Pillow rounds it.
func Luma(r, g, b uint8) uint8 {
	return uint8((19595*uint32(r) + 38470*uint32(g) + 7471*uint32(b) + 1<<15) >> 16)
}

// Shade moves every byte of pix away from base by factor: Blend(base, v, factor).
func Shade(pix []uint8, base, factor float32) {
	if n := len(pix) &^ (least - 1); n > 0 && hasAVX2 {
		if hasWide {
			shadeAVX512(&pix[0], n, base, factor)
		} else {
			shadeAVX2(&pix[0], n, base, factor)
		}
		pix = pix[n:]
	}
	shadePlain(pix, base, factor)
}

func shadePlain(pix []uint8, base, factor float32) {
	for i, v := range pix {
		pix[i] = Blend(base, float32(v), factor)
	}
}

// Saturate moves every RGB pixel of pix away from its brightness by factor.
func Saturate(pix []uint8, factor float32) {
	if n := len(pix) / 3 &^ (least - 1); n > 0 && hasAVX2 {
		if hasWide {
			saturateAVX512(&pix[0], n, factor)
		} else {
			saturateAVX2(&pix[0], n, factor)
		}
		pix = pix[3*n:]
	}
	saturatePlain(pix, factor)
}

func saturatePlain(pix []uint8, factor float32) {
	for i := 0; i+3 <= len(pix); i += 3 {
		p := pix[i : i+3 : i+3]
		gray := float32(Luma(p[0], p[1], p[2]))
		p[0] = Blend(gray, float32(p[0]), factor)
		p[1] = Blend(gray, float32(p[1]), factor)
		p[2] = Blend(gray, float32(p[2]), factor)
	}
}

// LumaSum is the sum of the brightness of the RGB pixels of pix.
func LumaSum(pix []uint8) uint64 {
	sum := uint64(0)
	// A lane holds 32 bits: 2^20 pixels in 8 lanes are far below.
	for hasAVX2 && len(pix) >= 3*least {
		n := min(len(pix)/3, 1<<20) &^ (least - 1)
		var lanes [16]uint32
		if hasWide {
			lumaSumAVX512(&lanes[0], &pix[0], n)
		} else {
			lumaSumAVX2(&lanes[0], &pix[0], n)
		}
		for _, v := range lanes {
			sum += uint64(v)
		}
		pix = pix[3*n:]
	}
	return sum + lumaSumPlain(pix)
}

func lumaSumPlain(pix []uint8) uint64 {
	sum := uint64(0)
	for i := 0; i+3 <= len(pix); i += 3 {
		p := pix[i : i+3 : i+3]
		sum += uint64(Luma(p[0], p[1], p[2]))
	}
	return sum
}

// half rounds the sums of box filters, whose weights are in units of 2^-24.
const half = 1 << 23

// Box3 sets dst[i] = b near + (a + c) far, in units of 2^-24, rounded. dst is none of
// the others; near + 2 far must not exceed 2^24.
func Box3(dst, a, b, c []uint8, near, far uint32) {
	n := len(dst)
	a, b, c = a[:n], b[:n], c[:n]
	switch {
	case n < least || !hasAVX2:
		box3Plain(dst, a, b, c, near, far)
	case hasWide:
		box3AVX512(&dst[0], &a[0], &b[0], &c[0], n, near, far)
	default:
		box3AVX2(&dst[0], &a[0], &b[0], &c[0], n, near, far)
	}
}

func box3Plain(dst, a, b, c []uint8, near, far uint32) {
	for i := range dst {
		dst[i] = uint8((uint32(b[i])*near + (uint32(a[i])+uint32(c[i]))*far + half) >> 24)
	}
}

// Box5 sets dst[i] = (b + c + d) near + (a + e) far, in units of 2^-24, rounded. dst is
// none of the others; 3 near + 2 far must not exceed 2^24.
func Box5(dst, a, b, c, d, e []uint8, near, far uint32) {
	n := len(dst)
	a, b, c, d, e = a[:n], b[:n], c[:n], d[:n], e[:n]
	switch {
	case n < least || !hasAVX2:
		box5Plain(dst, a, b, c, d, e, near, far)
	case hasWide:
		box5AVX512(&dst[0], &a[0], &b[0], &c[0], &d[0], &e[0], n, near, far)
	default:
		box5AVX2(&dst[0], &a[0], &b[0], &c[0], &d[0], &e[0], n, near, far)
	}
}

func box5Plain(dst, a, b, c, d, e []uint8, near, far uint32) {
	for i := range dst {
		dst[i] = uint8(((uint32(b[i])+uint32(c[i])+uint32(d[i]))*near + (uint32(a[i])+uint32(e[i]))*far + half) >> 24)
	}
}
