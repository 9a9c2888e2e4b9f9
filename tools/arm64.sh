#!/bin/sh
# Runs the tests of the kernels on an arm64 that qemu-user plays, or with "quickstart" three steps of the quickstart,
# whose losses must be those of amd64. Says so and does nothing where there is no qemu-aarch64. The program is the
# static one: it needs no C library of that system.
set -eu
cd "$(dirname "$0")/.."
go=${GO:-go}
qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || {
	echo "arm64: skipped: no qemu-aarch64 (Debian, Ubuntu: apt-get install qemu-user)"
	exit 0
}
export CGO_ENABLED=0
if [ "${1:-kernels}" = quickstart ]; then
	GOARCH=arm64 "$go" build -tags static -o bin/trainer-arm64 ./cmd/trainer
	GEOALIGN_ARM64="$qemu -cpu max $PWD/bin/trainer-arm64" "$go" test ./cmd/trainer -run TestQuickstartOnARM64 -v -count 1 -timeout 60m
	exit 0
fi
# What takes minutes there, or is compared with what the processor tells, is left to amd64.
GOARCH=arm64 "$go" test -vet=off -tags static -short -exec "$qemu -cpu max" -timeout 10m \
	-run '^Test(SameBits|SingleTiles|VectorAgainstPlain|VectorStaysInside|SoftmaxRowsExtremes|Columns|GRUGates|CompareExchange|BiasGELU|AdamWEMA|CPULevelsOnlyLower)$' ./internal/kernel ./internal/kernel/gemm ./internal/kernel/vector ./internal/kernel/cpu
