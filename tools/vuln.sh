#!/bin/sh
# Looks for known vulnerabilities in what this module calls, its dependencies and Go's library, by govulncheck. It fails for those that are
# called. GOVULNDB may name another database. It says in a line why nothing was looked at where the program or its database cannot be reached, which is no failure.
set -u
cd "$(dirname "$0")/.." || exit 1
version=v1.9.0
go=${GO:-go}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

limited() { # a number of seconds, and what must not take longer
	if command -v timeout >/dev/null 2>&1; then
		timeout "$@"
	else
		shift
		"$@"
	fi
}

unchecked() {
	echo "vuln: not checked: $*"
	exit 0
}

GOBIN=$dir limited 120 "$go" install "golang.org/x/vuln/cmd/govulncheck@$version" >"$dir/log" 2>&1 ||
	unchecked "govulncheck $version cannot be downloaded or built ($(tail -n 1 "$dir/log"))"
limited 20 "$dir/govulncheck" ${GOVULNDB:+-db="$GOVULNDB"} -mode=query -format=json stdlib@go1.26.0 >"$dir/log" 2>&1 ||
	unchecked "the database of vulnerabilities cannot be reached ($(tail -n 1 "$dir/log"))"
limited 300 "$dir/govulncheck" ${GOVULNDB:+-db="$GOVULNDB"} ./... >"$dir/log" 2>&1
code=$?
[ $code = 124 ] && unchecked "govulncheck took more than 300 s"
[ $code != 0 ] && grep -q "fetching vulnerabilities" "$dir/log" && unchecked "the database of vulnerabilities was lost ($(tail -n 1 "$dir/log"))"
cat "$dir/log"
[ $code = 3 ] && echo "vuln: a vulnerability is called: update the module or Go that has it"
[ $code = 0 ] || exit 1
