package memory

import "syscall"

// adviseHuge asks for huge pages. A kernel without them refuses, which changes
// nothing but the speed.
func adviseHuge(b []byte) { _ = syscall.Madvise(b, syscall.MADV_HUGEPAGE) }
