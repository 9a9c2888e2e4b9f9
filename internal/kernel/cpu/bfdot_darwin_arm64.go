package cpu

import (
	"sync"

	"golang.org/x/sys/unix"
)

// bfdot says whether the processor has BFDOT, as the system tells.
var bfdot = sync.OnceValue(func() bool {
	v, err := unix.SysctlUint32("hw.optional.arm.FEAT_BF16")
	return err == nil && v != 0
})
