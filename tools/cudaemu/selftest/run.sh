#!/bin/sh
# Builds the emulator and its test in a temporary folder and runs the test in several orders of threads.
set -e
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
g++ -O2 -Wall -Wextra -shared -fPIC -o "$folder/libcudaemu.so" "$here"/../*.cpp -ldl
g++ -O1 -Wall -o "$folder/selftest" "$here/selftest.cpp" -ldl
export CUDAEMU_CACHE="$folder/cache"
failed=0
for setting in CUDAEMU_ORDER=forward CUDAEMU_ORDER=reverse CUDAEMU_ORDER=random:1 CUDAEMU_ORDER=random:2 CUDAEMU_LATE=1; do
  echo "== $setting"
  env "$setting" "$folder/selftest" "$folder/libcudaemu.so" "$here/kernels.cu" >"$folder/out" 2>"$folder/err" || failed=1
  grep -v '^ok' "$folder/out" || true
done
[ $failed = 0 ] || cat "$folder/err"
exit $failed
