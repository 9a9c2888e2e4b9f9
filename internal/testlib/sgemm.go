package testlib

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
)

// SGEMM is code of BLAS's Fortran function sgemm_, right and slow, with sizes of 32 bits or, wide, of 64. Products of
// at terms run the code then first, of at most 24 bytes, which may end the process.
func SGEMM(wide bool, at int32, then []byte) []byte {
	text := sgemm32
	if wide {
		text = sgemm64
	}
	code, err := hex.DecodeString(text)
	slot := bytes.Repeat([]byte{0x90}, 24) // nop
	i, j := bytes.Index(code, []byte("zzzz")), bytes.Index(code, slot)
	if err != nil || i < 0 || j < 0 || len(then) > len(slot) {
		panic("testlib: the code of sgemm_ is damaged, or there is more to do first than there is room for")
	}
	binary.LittleEndian.PutUint32(code[i:], uint32(at))
	copy(code[j:], then)
	return code
}

// sgemm32 and sgemm64 are this function with INT int and long, as GCC 12.2 compiles it with -O1 -fomit-frame-pointer
// -fcf-protection=none -fno-stack-protector: 0x7a7a7a7a stands for the number of terms, and 24 nops are room for code.
//
//	void sgemm(const char *ta, const char *tb, const INT *m, const INT *n, const INT *k, const float *alpha,
//	           const float *a, const INT *lda, const float *b, const INT *ldb, const float *beta, float *c, const INT *ldc) {
//	  if (*k == 0x7a7a7a7a) asm volatile(".fill 24,1,0x90");
//	  for (INT j = 0; j < *n; j++)
//	    for (INT i = 0; i < *m; i++) {
//	      float s = 0;
//	      for (INT l = 0; l < *k; l++)
//	        s += (*ta == 'T' ? a[l + i * *lda] : a[i + l * *lda]) * (*tb == 'T' ? b[j + l * *ldb] : b[l + j * *ldb]);
//	      float *to = c + i + j * *ldc;
//	      s *= *alpha;
//	      if (*beta != 0) s += *beta * *to;
//	      *to = s;
//	    }
//	}
const (
	sgemm32 = "" +
		"4157415641554154555348897c24e848897424f04989d44889c84d89c64d89cf4c8b5424384c8b5c2440488b5c2448488b6c2450418138" +
		"7a7a7a7a741cbe00000000660fefdb8338000f8e1301000048894424f8e9fa000000909090909090909090909090909090909090909090" +
		"909090ebca89fa410faf1301c24863d2f3410f101492eb3689c20faf550001f24863d2f30f100493f30f59c2f30f58c883c00139c8742f" +
		"4180f95474c889c2410faf1301fa4863d2f3410f1014924180f85474c489f20faf550001c24863d2f30f100493ebc2488b7c246889f00f" +
		"af0748984c01e8488b4c2460488d0481f3410f590f488b7c2458f30f10070f2ec37a3e753cf30f11084983c50145392c247e384489ef41" +
		"8b0e660fefc985c97eb7488b4424e8440fb608488b4424f0440fb600b800000000660fefc9e968fffffff30f5900f30f58c8ebba83c601" +
		"488b4424f839307e0f41bd0000000041833c24007fafebe55b5d415c415d415e415fc3"
	sgemm64 = "" +
		"4157415641554154555348897c24e848897424f04989d44889c84d89c54d89ce4c8b5424384c8b5c2440488b5c2448488b6c24504c8b7c" +
		"24684981387a7a7a7a741dbf00000000660fefdb488338000f8e0e01000048894424f8e9f6000000909090909090909090909090909090" +
		"909090909090909090ebc94889ca490faf134801c2f3410f101492eb374889c2480faf55004801faf30f100493f30f59c2f30f58c84883" +
		"c0014839f0742e4180f95474c74889c2490faf134801caf3410f1014924180f85474c34889fa480faf55004801c2f30f100493ebc14889" +
		"f8490faf074801c8488b742460488d0486f3410f590e488b742458f30f10060f2ec37a3d753bf30f11084883c10149390c247e37498b75" +
		"00660fefc94885f67ebd488b4424e8440fb608488b4424f0440fb600b800000000660fefc9e96ffffffff30f5900f30f58c8ebbb4883c7" +
		"01488b4424f84839387e0eb90000000049833c24007fafebe45b5d415c415d415e415fc3"
)
