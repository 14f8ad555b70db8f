#!/bin/sh
# The number floor on aarch64 under qemu-user: products, row kernels and casts give the same bytes as on x86-64
# (tests/number/same_bytes_test.cpp pins their digests). Debian or Ubuntu on x86-64, root or sudo; about five minutes.
set -eu
cd "$(dirname "$0")/.."
work=build/aarch64
mkdir -p "$work/packages" "$work/root" "$work/objects"

as_root=""
[ "$(id -u)" = 0 ] || as_root="sudo"
$as_root dpkg --add-architecture arm64
$as_root apt-get update -qq
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
  g++-aarch64-linux-gnu qemu-user >/dev/null

# Unpacked beside the build, not installed.
(cd "$work/packages" && apt-get download -qq libhwy1:arm64 libhwy-dev:arm64 libtbb12:arm64 libtbb-dev:arm64 \
  libfmt-dev:arm64 libgtest-dev:arm64 libgcc-s1:arm64 libstdc++6:arm64 libc6:arm64)
for package in "$work"/packages/*.deb; do
  dpkg-deb -x "$package" "$work/root"
done

root=$work/root/usr
flags="-std=c++20 -O2 -ffp-contract=off -fno-trapping-math -fno-math-errno -DHWY_SHARED_DEFINE -DFMT_HEADER_ONLY
  -DTRENA_SOURCE_DIR=\"$(pwd)\" -Isrc -I$root/include -I$root/include/aarch64-linux-gnu"
for source in src/trena/error.cpp src/trena/number/*.cpp tests/number/same_bytes_test.cpp; do
  object=$work/objects/$(basename "$source" .cpp).o
  [ "$object" -nt "$source" ] || aarch64-linux-gnu-g++ $flags -c "$source" -o "$object"
done
aarch64-linux-gnu-g++ -o "$work/same_bytes" "$work"/objects/*.o -L"$root/lib/aarch64-linux-gnu" \
  -Wl,--allow-shlib-undefined -lgtest_main -lgtest -lhwy -ltbb -lpthread
qemu-aarch64 -L "$work/root" -E LD_LIBRARY_PATH="$root/lib/aarch64-linux-gnu:$work/root/lib/aarch64-linux-gnu" \
  "$work/same_bytes"
