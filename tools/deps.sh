#!/bin/sh
# Installs the oneDNN run-time library, Open MPI and libjpeg-turbo where a package manager has them and
# may be used without a question. Never fails: without oneDNN the built-in kernels do the
# work, only slower; without MPI a run is one process; without libjpeg-turbo the built-in decoder
# reads images. Says what happened in one line each.

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

apt_update() { $root $limit apt-get update -qq >/dev/null 2>&1; }

apt_get() { # installs a package, with new package lists if the old ones name files that the mirror no longer has
	install="apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=60 $1"
	$root env DEBIAN_FRONTEND=noninteractive $limit $install >/dev/null 2>&1 || {
		apt_update
		$root env DEBIAN_FRONTEND=noninteractive $limit $install >/dev/null 2>&1
	}
}

without() { say "oneDNN is missing ($1): the built-in kernels will be used; 'bin/trainer doctor' says how to get it"; }

found() { # the file of oneDNN
	if [ -n "${GEOALIGN_ONEDNN:-}" ] && [ -e "$GEOALIGN_ONEDNN" ]; then
		echo "$GEOALIGN_ONEDNN"
		return
	fi
	# ldconfig is not on every user's PATH.
	lib=$(PATH="$PATH:/sbin:/usr/sbin" ldconfig -p 2>/dev/null | sed -n 's/.*=> \(.*libdnnl\.so\.[0-9.]*\)$/\1/p' | head -n 1)
	for f in "$lib" /opt/homebrew/lib/libdnnl.dylib /usr/local/lib/libdnnl.dylib /usr/local/lib/libdnnl.so; do
		if [ -n "$f" ] && [ -e "$f" ]; then
			echo "$f"
			return
		fi
	done
}

apt_package() { # the newest libdnnl that the package lists know
	apt-cache search --names-only '^libdnnl[0-9.]+$' 2>/dev/null | cut -d' ' -f1 | sort -V | tail -n 1
}

onednn() {
	lib=$(found)
	if [ -n "$lib" ]; then
		say "oneDNN found: $lib"
		return
	fi
	if command -v brew >/dev/null 2>&1; then
		say "installing oneDNN with brew"
		$limit brew install --quiet onednn >/dev/null 2>&1 || { without "brew install onednn failed"; return; }
	elif command -v apt-get >/dev/null 2>&1; then
		[ "$root" = none ] && { without "installing it needs root: sudo apt-get install libdnnl3 or libdnnl2"; return; }
		package=$(apt_package)
		[ -z "$package" ] && apt_update && package=$(apt_package)
		[ -z "$package" ] && { without "no libdnnl package is known to apt"; return; }
		say "installing $package with apt-get"
		apt_get "$package" || { without "apt-get install $package failed"; return; }
	elif command -v dnf >/dev/null 2>&1; then
		[ "$root" = none ] && { without "installing it needs root: sudo dnf install onednn"; return; }
		say "installing onednn with dnf"
		$root $limit dnf install -y -q onednn >/dev/null 2>&1 || { without "dnf install onednn failed"; return; }
	else
		without "no known package manager"
		return
	fi
	lib=$(found)
	[ -z "$lib" ] && { without "the package was installed but no libdnnl was found"; return; }
	say "oneDNN installed: $lib"
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

jpeg() {
	lib=$(PATH="$PATH:/sbin:/usr/sbin" ldconfig -p 2>/dev/null | sed -n 's/.*=> \(.*libturbojpeg\.so\.[0-9.]*\)$/\1/p' | head -n 1)
	if [ -n "$lib" ]; then
		say "libjpeg-turbo found: $lib"
	elif ! command -v apt-get >/dev/null 2>&1 || [ "$root" = none ]; then
		say "libjpeg-turbo is missing: the built-in decoder reads images; 'bin/trainer doctor' says how to get it"
	elif apt_get libturbojpeg0 || apt_get libturbojpeg; then
		say "libjpeg-turbo installed"
	else
		say "libjpeg-turbo is missing (apt-get install libturbojpeg0 failed): the built-in decoder reads images"
	fi
}

onednn
mpi
jpeg
exit 0
