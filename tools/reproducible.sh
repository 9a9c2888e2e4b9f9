#!/bin/sh
# Builds the static program here and in a copy of the tree elsewhere, as a release does, and fails where a byte differs.
# What git knows of the two folders differs, and is left out.
set -eu
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z -co --exclude-standard | tar -cf - --null --ignore-failed-read -T - 2>/dev/null | (mkdir "$copy/tree" && tar -xf - -C "$copy/tree")
build() {
	CGO_ENABLED=0 "${GO:-go}" build -trimpath -buildvcs=false -tags static -ldflags "-s -w -buildid=" -o "$1" ./cmd/trainer
}
build "$copy/here"
(cd "$copy/tree" && build "$copy/there")
cmp "$copy/here" "$copy/there" || {
	echo "reproducible: two builds of one source differ: something in them depends on the folder or the time" >&2
	exit 1
}
