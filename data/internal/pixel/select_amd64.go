package pixel

// filterRows runs a row program on two rows.
func filterRows(dst0, dst1, src0, src1 *uint8, program *int32, blocks int) {
	if hasWide {
		filterRowsAVX512(dst0, dst1, src0, src1, program, blocks)
	} else {
		filterRowsAVX2(dst0, dst1, src0, src1, program, blocks)
	}
}

// shrinkRow runs a shrink program on a row.
func shrinkRow(dst, src *uint8, program *int32, n int) {
	if hasWide {
		shrinkRowAVX512(dst, src, program, n)
	} else {
		shrinkRowAVX2(dst, src, program, n)
	}
}
