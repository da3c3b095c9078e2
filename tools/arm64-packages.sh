#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Cross builds the Debian package and the wheel for arm64, and records under emulation with both.
#
#   tools/arm64-packages.sh OUT_DIR
#
# The Debian package is for Debian 12. The wheel needs glibc 2.36. Needs what tools/arm64-test.sh
# needs.
set -eu

if [ $# -ne 1 ]; then
	sed -n '5s/^# *//p' "$0" >&2
	exit 2
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
export XTRACE_ARM64_ROOT=${XTRACE_ARM64_ROOT:-$PWD/build-arm64-root}
tools/install-deps.sh --arm64
[ -d "$XTRACE_ARM64_ROOT" ] || tools/arm64-root.sh --system "$XTRACE_ARM64_ROOT"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "arm64-packages: $*" >&2
	exit 1
}

# Records and merges with an installed tree. Usage: try WHAT BIN_DIR SAMPLE
try() {
	local xtrace=$2/xtrace

	file=$(od -An -tx1 -j18 -N2 "$xtrace")
	[ "$file" = " b7 00" ] || fail "$1: $xtrace is not for aarch64"
	tools/arm64-emulate.sh "$xtrace" --version
	tools/arm64-emulate.sh "$xtrace" record --simulate -o "$work/trace-$1" "$3" --tokens 4 >/dev/null
	tools/arm64-emulate.sh "$2/xtrace-merge" "$work/trace-$1" --quiet --folded - |
		grep -q '^main;run;.*forward;.*cuLaunchKernel' || fail "$1: the recording has no call paths"
	echo "arm64-packages: the $1 records"
}

tools/deb.sh "$out" -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/aarch64.cmake"
deb=$(ls "$out"/xtrace-gpu_*_arm64.deb)
dpkg-deb -x "$deb" "$work/deb"
# cpack goes on if dpkg-shlibdeps fails.
for library in libc6 libdw1 libevent-2.1-7 libsqlite3-0 libunwind8 libzstd1; do
	dpkg-deb -f "$deb" Depends | grep -q "$library" || fail "$deb does not depend on $library"
done
for package in $(dpkg-deb -f "$deb" Depends | sed 's/([^)]*)//g; s/:any//g; s/,/ /g'); do
	grep -qx "Package: $package" "$XTRACE_ARM64_ROOT/var/lib/dpkg/status" ||
		fail "$deb depends on $package, which is not in $XTRACE_ARM64_ROOT"
done
try deb "$work/deb/usr/bin" "$work/deb/usr/lib/aarch64-linux-gnu/xtrace-gpu/samples/llm_inference"

build=$PWD/build-arm64-wheel
rm -rf "$build"
{
	cmake --preset arm64 -B "$build" -DBUILD_TESTING=OFF -DXTRACE_HTML=ON \
		-DCMAKE_C_FLAGS="-ffile-prefix-map=$PWD=." -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON &&
		cmake --build "$build" && cmake --install "$build" --prefix "$work/tree"
} >"$work/log" 2>&1 || {
	tail -n 20 "$work/log" >&2
	fail "cannot build the tree of the wheel"
}
# Samples keep their symbols, as programs that users trace do.
find "$work/tree/bin" "$work/tree/lib" -type f \( -name xtrace -o -name '*.so*' \) \
	-exec aarch64-linux-gnu-strip --strip-unneeded {} +
wheel=$(tools/wheel/build.py --glibc 2.36 "$work/tree" "$out")
# As pip does, which refuses wheels of other machines.
python3 -m zipfile -e "$wheel" "$work/unpacked"
mv "$work"/unpacked/*.data/data "$work/wheel"
mv "$work"/unpacked/*.data/scripts "$work/wheel/bin"
chmod +x "$work"/wheel/bin/* "$work/wheel/share/xtrace/samples/llm_inference"
try wheel "$work/wheel/bin" "$work/wheel/share/xtrace/samples/llm_inference"
ls -l "$deb" "$wheel"
