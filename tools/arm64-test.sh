#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Cross builds for arm64 and tests it under qemu: the quick tests, less those of
# tests/emulation/excluded.txt, and logs of either architecture merged on both, with equal outputs.
# Takes about ten minutes. Installs Debian's cross compiler and qemu-user if it runs as root.
set -eu
cd "$(dirname "$0")/.."
export XTRACE_ARM64_ROOT=${XTRACE_ARM64_ROOT:-$PWD/build-arm64-root}

if [ "$(id -u)" -eq 0 ]; then
	apt-get install -qq -y --no-install-recommends gcc-aarch64-linux-gnu g++-aarch64-linux-gnu \
		libc6-dev-arm64-cross qemu-user >/dev/null
fi
[ -d "$XTRACE_ARM64_ROOT" ] || tools/arm64-root.sh "$XTRACE_ARM64_ROOT"
cmake --preset release >/dev/null
cmake --build build
cmake --preset arm64 >/dev/null
cmake --build build-arm64

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
emulate=tools/arm64-emulate.sh

# Records with one build, merges with both. Usage: exchange BUILD
exchange() {
	"$emulate" "$1/bin/xtrace" record --simulate -o "$work/$1" "$1/bin/samples/llm_inference" >/dev/null
	for reader in build build-arm64; do
		"$emulate" "$reader/bin/xtrace" merge "$work/$1" --folded "$work/$1.$reader.folded" \
			--text "$work/$1.$reader.text" --summary "$work/$1.$reader.json" \
			--svg "$work/$1.$reader.svg"
	done
	for format in folded text json svg; do
		cmp "$work/$1.build.$format" "$work/$1.build-arm64.$format"
	done
	grep -q '^main;run;.*forward;.*cuLaunchKernel' "$work/$1.build.folded"
	echo "arm64-test: same output of both architectures for a log of $1"
}
exchange build
exchange build-arm64

excluded=$(sed -n 's/^\([a-z][^ ]*\) .*/\1/p' tests/emulation/excluded.txt | paste -sd '|' | sed 's/\./\\./g')
"$emulate" ctest --test-dir build-arm64 -L quick -j "$(nproc)" --timeout 120 --output-on-failure \
	-E "^($excluded)\$"
