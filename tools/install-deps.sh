#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the missing packages for building and testing xtrace on Debian 12 or 13 and Ubuntu 24.04.
# Safe to repeat. --lint adds clang-format, codespell, gdb and Debian's package tools. --browser
# adds Chromium for the tests of the HTML report, --prometheus Prometheus for a nightly test,
# --arm64 the cross compiler and qemu, --portable what tools/portable.sh needs on Debian 12, and
# --release what tools/release.sh needs there.
set -eu

packages="
gcc g++ libc6-dev binutils cmake ninja-build pkg-config git python3
libunwind-dev libzstd-dev libcjson-dev libelf-dev libdw-dev libiberty-dev libcmocka-dev valgrind dwz
zlib1g-dev liblzma-dev libsqlite3-dev libevent-dev libprotobuf-c-dev protobuf-c-compiler protobuf-compiler python3-protobuf
python3-venv python3-jsonschema python3-yaml python3-greenlet libdebuginfod-dev
nodejs npm zsh libopenmpi-dev openmpi-bin
"

browser=
portable="dpkg-dev debian-archive-keyring m4 tcl git"
for argument in "$@"; do
	case $argument in
	--lint) packages="$packages clang-format codespell gdb dpkg-dev lintian" ;;
	--browser) browser=chromium ;;
	--arm64)
		packages="$packages gcc-aarch64-linux-gnu g++-aarch64-linux-gnu"
		packages="$packages libc6-dev-arm64-cross qemu-user"
		;;
	--prometheus) packages="$packages prometheus" ;;
	--portable) packages="$packages $portable" ;;
	--release) packages="$packages $portable debootstrap file lintian" ;;
	*)
		echo "usage: tools/install-deps.sh [--lint] [--browser] [--arm64] [--prometheus]" \
			"[--portable] [--release]" >&2
		exit 2
		;;
	esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	echo "install-deps: this is no Debian or Ubuntu; needed are, as Debian calls them:" $packages >&2
	exit 1
fi

# Other packages provide some of these: pkgconf has pkg-config, and node's own packages have npm.
is_installed() {
	case $1 in
	pkg-config | npm | chromium | git)
		command -v "$1" >/dev/null
		return
		;;
	nodejs)
		command -v node >/dev/null
		return
		;;
	esac
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing=
for package in $packages $browser; do
	is_installed "$package" || missing="$missing $package"
done
if [ -z "$missing" ]; then
	echo "install-deps: everything needed is installed"
	exit 0
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
	if ! command -v sudo >/dev/null; then
		echo "install-deps: missing:$missing; run this as root, or install sudo" >&2
		exit 1
	fi
	as_root=sudo
fi

echo "install-deps: installing$missing"
run_apt() {
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 \
		-o Acquire::Retries=3 "$@"
}
run_apt update >/dev/null
run_apt install -y --no-install-recommends $missing >/dev/null
echo "install-deps: done"
