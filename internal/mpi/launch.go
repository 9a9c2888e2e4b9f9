package mpi

import (
	"os"
	"path/filepath"
	"strconv"
)

// Variable names the environment variable that names the MPI library, or "off" for a process that
// is on its own whoever has launched it.
const Variable = "GEOALIGN_MPI"

// off is the value of Variable for no MPI.
const off = "off"

// Launcher is what has started this process as one of several.
type Launcher struct {
	Name   string // for messages
	Rank   int
	Size   int      // 0 where the launcher does not tell
	fits   []Family // whose libraries understand it; all where it is empty
	prefix string   // the folder that it is installed in, "" if unknown
}

// launchers lists how launchers tell a process its rank and the number of ranks. Each variable is
// one that is set for every process: the number of tasks of a SLURM job alone is there in a plain
// shell of the job too.
var launchers = []struct {
	name, rank, size string
	fits             []Family
}{
	// mpirun of Open MPI, and prun.
	{"mpirun of Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", []Family{OpenMPI, ABI}},
	{"mpirun of MVAPICH2", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", []Family{MPICH}},
	// Hydra, the mpirun of MPICH and of Intel MPI; srun --mpi=pmi2; PALS; Flux.
	{"a launcher with PMI (mpirun of MPICH or Intel MPI, srun --mpi=pmi2)", "PMI_RANK", "PMI_SIZE", []Family{ABI, MPICH}},
	// PMIx, which Open MPI always speaks and MPICH if it is built so.
	{"srun --mpi=pmix", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", []Family{OpenMPI, ABI, MPICH}},
	{"a launcher with PMIx", "PMIX_RANK", "", []Family{OpenMPI, ABI, MPICH}},
	{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", nil},
}

// Launched returns the launcher of this process, nil where it was started on its own.
func Launched() *Launcher { return launched(os.Getenv) }

// launched is Launched in an environment.
func launched(env func(string) string) *Launcher {
	if env(Variable) == off {
		return nil
	}
	for _, l := range launchers {
		rank, err := strconv.Atoi(env(l.rank))
		if err != nil || rank < 0 {
			continue
		}
		size := 0
		if l.size != "" {
			if size, err = strconv.Atoi(env(l.size)); err != nil || size < 1 {
				continue
			}
		}
		return &Launcher{Name: l.name, Rank: rank, Size: size, fits: l.fits, prefix: env("OPAL_PREFIX")}
	}
	return nil
}

// programs are the names of the programs that start the processes of a run, and the families whose
// they are. Behind a process that was started by hand is a shell.
var programs = map[string][]Family{
	"orterun": {OpenMPI, ABI}, "orted": {OpenMPI, ABI}, "prterun": {OpenMPI, ABI}, "prted": {OpenMPI, ABI},
	"prte":           {OpenMPI, ABI},
	"mpirun.openmpi": {OpenMPI, ABI}, "mpiexec.openmpi": {OpenMPI, ABI}, "ompirun_wrapper": {OpenMPI, ABI},
	"mpiexec.hydra": {ABI, MPICH}, "mpirun.mpich": {ABI, MPICH}, "mpiexec.mpich": {ABI, MPICH},
	"hydra_pmi_proxy": {ABI, MPICH}, "mpiexec.gforker": {ABI, MPICH},
	"mpirun": nil, "mpiexec": nil,
}

// installed returns the folder that an executable is installed in, /usr for /usr/bin/orterun, and
// whose it is. ok is false for one that starts no MPI programs.
func installed(executable string) (prefix string, fits []Family, ok bool) {
	fits, ok = programs[filepath.Base(executable)]
	return filepath.Dir(filepath.Dir(executable)), fits, ok
}
