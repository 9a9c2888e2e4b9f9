#!/bin/sh
# Builds the emulator and its test in a temporary folder and runs the test in several orders of threads.
set -e
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
g++ -O2 -Wall -Wextra -shared -fPIC -o "$folder/libcudaemu.so" "$here"/../*.cpp -ldl
g++ -O1 -Wall -o "$folder/selftest" "$here/selftest.cpp" -ldl
export CUDAEMU_CACHE="$folder/cache"
for order in forward reverse random:1 random:2; do
  echo "== CUDAEMU_ORDER=$order"
  CUDAEMU_ORDER=$order "$folder/selftest" "$folder/libcudaemu.so" "$here/kernels.cu" ${1:+2>/dev/null} | grep -v '^ok'
done
echo "== CUDAEMU_LATE=1"
CUDAEMU_LATE=1 "$folder/selftest" "$folder/libcudaemu.so" "$here/kernels.cu" | grep -v '^ok'
