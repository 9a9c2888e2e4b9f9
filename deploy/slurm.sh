#!/bin/bash
# geoalign on nodes of a Slurm cluster, a rank on each socket.
#
#   sbatch deploy/slurm.sh configs/flickr8k.toml --set data.root=/shared/flickr8k
#
# The run folder must lie on a file system that all nodes see. A job that is cut off goes on where it
# saved: Slurm sends SIGTERM two minutes before the end, trainer saves and ends with 130, and the job
# asks to be queued again. A node that dies ends all ranks; --requeue starts the job anew, with the
# last checkpoint.
#
# On nodes with 8 GPUs: sbatch --ntasks-per-node=8 --gpus-per-node=8 deploy/slurm.sh CONFIG --set compute.device=cuda.
# Each rank of a node takes a GPU of its own (docs/gpu.md).
#SBATCH --job-name=geoalign
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=16
#SBATCH --time=12:00:00
#SBATCH --signal=TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append

config=$1
shift

# srun gives each rank its cores. The library must be one that this Slurm starts: srun --mpi=list says
# which there are; Open MPI needs pmix, MPICH and Intel MPI pmi2 or pmix.
srun --mpi="${GEOALIGN_SRUN_MPI:-pmix}" --cpu-bind=cores --kill-on-bad-exit=1 trainer train --config "$config" "$@"
status=$?
if [ "$status" -eq 130 ]; then # saved on request
	scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
