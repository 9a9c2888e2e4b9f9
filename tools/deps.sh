#!/bin/sh
# Installs what is optional, Open MPI and qemu-user, where apt may be used without a question. Never fails: without MPI a
# run is one process and its tests are skipped, and so are tests for arm64 without qemu-user. A line says what happened.

say() { echo "deps: $*"; }

if [ "$(id -u)" = 0 ]; then
	root=""
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
	root="sudo -n"
else
	root="none"
fi

# A package manager that waits for a network or a lock must not hold up a build.
limit=""
command -v timeout >/dev/null 2>&1 && limit="timeout 300"

apt_get() { # installs a package, with new package lists if the old ones name files that the mirror no longer has
	install="apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=60 $1"
	$root env DEBIAN_FRONTEND=noninteractive $limit $install >/dev/null 2>&1 || {
		$root $limit apt-get update -qq >/dev/null 2>&1
		$root env DEBIAN_FRONTEND=noninteractive $limit $install >/dev/null 2>&1
	}
}

mpi() {
	if mpirun=$(command -v mpirun); then
		say "MPI found: $mpirun"
	elif ! command -v apt-get >/dev/null 2>&1 || [ "$root" = none ]; then
		say "MPI is missing: training is on one process, and tests of several are skipped; 'bin/trainer doctor' says how to get it"
	elif apt_get openmpi-bin; then
		say "MPI installed: openmpi-bin"
	else
		say "MPI is missing (apt-get install openmpi-bin failed): training is on one process, and tests of several are skipped"
	fi
}

qemu() { # plays an arm64 for the tests of its kernels
	if command -v qemu-aarch64 >/dev/null 2>&1; then
		say "qemu-user found"
	elif ! command -v apt-get >/dev/null 2>&1 || [ "$root" = none ]; then
		say "qemu-user is missing: tests for arm64 are skipped"
	elif apt_get qemu-user; then
		say "qemu-user installed"
	else
		say "qemu-user is missing (apt-get install qemu-user failed): tests for arm64 are skipped"
	fi
}

mpi
qemu
exit 0
