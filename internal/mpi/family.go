package mpi

// Family is a group of MPI libraries with one binary interface.
type Family int

// The families.
const (
	ABI     Family = iota + 1 // the standard interface of MPI 5, chapter 20: any library's libmpi_abi
	MPICH                     // MPICH and what has its interface: Intel MPI, MVAPICH, Cray MPICH
	OpenMPI                   // Open MPI
)

// String implements fmt.Stringer.
func (f Family) String() string {
	return [...]string{"unknown", "the standard MPI ABI", "MPICH", "Open MPI"}[f]
}

// constants are the values of mpi.h that World hands over. They are MPI_COMM_WORLD and so on as a
// function takes them: numbers in the standard ABI and in MPICH, addresses of the library's
// variables in Open MPI.
type constants struct {
	world, bytes, returns, noInfo uintptr // MPI_COMM_WORLD, MPI_BYTE, MPI_ERRORS_RETURN, MPI_INFO_NULL
	inPlace, noStatus             uintptr // MPI_IN_PLACE, MPI_STATUS_IGNORE
	funneled                      int32   // MPI_THREAD_FUNNELED
}

// constantsOf returns the constants of a family. address gives those of a variable, which Open MPI
// needs.
//
// Sources: mpi_abi.h of MPICH 5.0.2 (standard ABI 1.0), mpi.h of MPICH 4.0.2, mpi.h of Open MPI
// 4.1.4. TestConstants compares them with the headers that it finds.
func constantsOf(f Family, address func(string) uintptr) constants {
	switch f {
	case ABI:
		return constants{world: 0x101, bytes: 0x247, returns: 0x143, noInfo: 0x130, inPlace: 1, noStatus: 0,
			funneled: 1024}
	case OpenMPI:
		return constants{world: address("ompi_mpi_comm_world"), bytes: address("ompi_mpi_byte"),
			returns: address("ompi_mpi_errors_return"), noInfo: address("ompi_mpi_info_null"), inPlace: 1, noStatus: 0,
			funneled: 1}
	default:
		return constants{world: 0x44000000, bytes: 0x4c00010d, returns: 0x54000001, noInfo: 0x1c000000,
			inPlace: ^uintptr(0), noStatus: 1, funneled: 1}
	}
}
