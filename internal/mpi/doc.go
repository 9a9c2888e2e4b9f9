// Package mpi connects the processes of a run that mpirun or another launcher has started on one
// machine or on many, through the MPI library that is found at run time, without cgo.
//
// # Threads
//
// One goroutine, locked to a thread of the system, loads the library and makes every call of MPI
// from MPI_Init_thread to MPI_Finalize, so that MPI_THREAD_FUNNELED is all that is asked of the
// library. What a World is asked for goes to this goroutine through a queue, and the order of the
// queue is the order of the exchanges: a Sum behind a Begin comes after it. Begin returns at once.
//
// Every exchange is begun in its non-blocking form and polled by MPI_Test, since Open MPI works on
// an exchange only inside of its functions, and since a goroutine that polls can see that nothing
// has come for too long and end all processes. While the caller waits, the thread polls without a
// pause for a time, and then with short ones; while the caller computes, with short pauses from the start.
// A pause gives the processor to the threads that compute. For them there is one more processor of
// Go's scheduler (GOMAXPROCS) than before Connect: else the goroutine would have to wait for the
// end of a time slice after every pause.
//
// # Sums
//
// The reductions of MPI promise no order, and none knows bfloat16 everywhere. So a sum is made of
// an exchange of bytes, in which each rank gets its share from all ranks, additions in the order
// of the ranks, and an exchange of the sums. Each rank receives and sends 2 (n-1)/n of the vector,
// as with the best reductions, and all ranks have the same bits, on any network and any number of
// machines.
//
// # Memory
//
// All that is sent and received passes through buffers of a fixed size, which belong to the library
// (MPI_Alloc_mem). Long vectors take several rounds, of which one is added up while the next is on
// its way. So nothing grows with the model, counts fit an int32, and a network that reads and
// writes memory by itself never sees Go's, whose pages the runtime gives back to the system
// without the knowledge of the library.
//
// # Signals
//
// Handlers that the library installs when it is initialised are removed again: they do not run on
// the alternate stack, which ends a Go program.
package mpi
