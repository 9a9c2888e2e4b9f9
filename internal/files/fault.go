package files

import "runtime/debug"

// RecoverFault sets *err to gone when memory that maps a file could not be read, because the file
// got shorter or its disk fails, and sets the goroutine back. It is deferred with the result of
// debug.SetPanicOnFault(true). Other panics go on.
func RecoverFault(err *error, gone error, before bool) {
	debug.SetPanicOnFault(before)
	switch p := recover().(type) {
	case nil:
	case interface{ Addr() uintptr }: // a memory fault
		*err = gone
	default:
		panic(p)
	}
}
