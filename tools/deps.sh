#!/bin/sh
# Installs the oneDNN run-time library where a package manager has it and may be
# used without a question. Never fails: without the library the built-in kernels
# do the work, only slower. Says what happened in one line.

say() { echo "deps: $*"; }

without() {
	say "oneDNN is missing ($1): the built-in kernels will be used; 'bin/trainer doctor' says how to get it"
	exit 0
}

found() {
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

lib=$(found)
if [ -n "$lib" ]; then
	say "oneDNN found: $lib"
	exit 0
fi

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

apt_package() { # the newest libdnnl that the package lists know
	apt-cache search --names-only '^libdnnl[0-9.]+$' 2>/dev/null | cut -d' ' -f1 | sort -V | tail -n 1
}

if command -v brew >/dev/null 2>&1; then
	say "installing oneDNN with brew"
	$limit brew install --quiet onednn >/dev/null 2>&1 || without "brew install onednn failed"
elif command -v apt-get >/dev/null 2>&1; then
	[ "$root" = none ] && without "installing it needs root: sudo apt-get install libdnnl3 or libdnnl2"
	package=$(apt_package)
	if [ -z "$package" ]; then
		$root $limit apt-get update -qq >/dev/null 2>&1
		package=$(apt_package)
	fi
	[ -z "$package" ] && without "no libdnnl package is known to apt"
	say "installing $package with apt-get"
	install="apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=60 $package"
	$root env DEBIAN_FRONTEND=noninteractive $limit $install >/dev/null 2>&1 || {
		# Old package lists name files that the mirror no longer has.
		$root $limit apt-get update -qq >/dev/null 2>&1
		$root env DEBIAN_FRONTEND=noninteractive $limit $install >/dev/null 2>&1 || without "apt-get install $package failed"
	}
elif command -v dnf >/dev/null 2>&1; then
	[ "$root" = none ] && without "installing it needs root: sudo dnf install onednn"
	say "installing onednn with dnf"
	$root $limit dnf install -y -q onednn >/dev/null 2>&1 || without "dnf install onednn failed"
else
	without "no known package manager"
fi

lib=$(found)
[ -z "$lib" ] && without "the package was installed but no libdnnl was found"
say "oneDNN installed: $lib"
