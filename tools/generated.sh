#!/bin/sh
# Runs every go:generate directive in a copy of the tree and fails if a file comes out other
# than it is here, or is not here: assembly and docs/config.md are what their generators make.
# With -trimpath the generators of one copy are those of the next to the build cache.
set -eu
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir "$copy/tree"
git ls-files -co --exclude-standard | while IFS= read -r f; do
	if [ -f "$f" ]; then printf '%s\n' "$f"; fi
done >"$copy/files"
tar -cf - -T "$copy/files" | tar -xf - -C "$copy/tree"
(cd "$copy/tree" && CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath" "${GO:-go}" generate ./...)
(cd "$copy/tree" && find . -type f) | sed "s|^\./||" | sort -u - "$copy/files" >"$copy/made"
while IFS= read -r f; do
	if ! cmp -s "$f" "$copy/tree/$f"; then
		echo "$f is not what its generator makes: change the source and run go generate ./..." >&2
		touch "$copy/differs"
	fi
done <"$copy/made"
if [ -e "$copy/differs" ]; then exit 1; fi
