#!/bin/bash
# Fuzzes every parser and everything else that has a Fuzz function, each for the time given:
# tools/fuzz.sh 30s. A part of a name chooses some: tools/fuzz.sh 5m Decode. What fails is written
# below testdata/fuzz of its package, from where every test run tries it. New inputs are made smaller in ten tries
# at most: without that limit a short run of a parser of large files does little else. What was found to be new stays in Go's build cache,
# so that several runs add up; the processor time of each is printed.
set -eu
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
time=${1:-30s}
failed=0
TIMEFORMAT='processor time %U s'
targets=$(grep -rho --include='*_test.go' '^func Fuzz[A-Za-z0-9]*'"${2:-}"'[A-Za-z0-9]*(' . | sort -u | sed 's/func //; s/(//')
[ -n "$targets" ] || { echo "fuzz.sh: no Fuzz function has \"${2:-}\" in its name" >&2; exit 2; }
for line in $targets; do
	for file in $(grep -rl --include='*_test.go' "^func $line(" .); do
		package=./$(dirname "${file#./}")
		echo "== $package $line"
		"${GO:-go}" test "$package" -run '^$' -fuzz "^$line\$" -fuzztime 1x > /dev/null 2>&1 || true # builds
		time "${GO:-go}" test "$package" -run '^$' -fuzz "^$line\$" -fuzztime "$time" -fuzzminimizetime 10x || failed=1
	done
done
exit $failed
