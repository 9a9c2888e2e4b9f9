#include "textflag.h"

// func pause()
//
// YIELD takes no time on most processors; ISB takes some tens of nanoseconds, as PAUSE does on amd64.
TEXT ·pause(SB), NOSPLIT, $0-0
	ISB $15
	RET
