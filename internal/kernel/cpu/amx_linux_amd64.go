package cpu

import "golang.org/x/sys/unix"

// allowAMX asks the system for the registers of AMX, which it gives to a process that asks alone: their state is large.
// It says whether there are any.
func allowAMX() bool {
	// ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA (arch_prctl(2), Documentation/arch/x86/xstate.rst)
	const requestPermission, tileData = 0x1023, 18
	_, _, failed := unix.RawSyscall(unix.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return failed == 0
}
