#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes a folder with Debian's arm64 packages that the cross build needs. Installs nothing here, and
# needs no root, but gcc for both processors. Usage: tools/arm64-root.sh [--system] DIR
# --system: also what all tests need, for tools/arm64-emulate.sh --chroot.
set -eu
packages=(libc6-dev libstdc++6 libunwind-dev libzstd-dev zstd libdw-dev libiberty-dev libsqlite3-dev
	libcjson-dev zlib1g-dev liblzma-dev libprotobuf-c-dev libevent-dev libcmocka-dev python3)

if [ "${1-}" = --system ]; then
	packages+=(bash bsdextrautils binutils ca-certificates cmake coreutils dash diffutils file
		findutils gawk gcc git grep gzip hostname procps python3-greenlet python3-jsonschema
		python3-protobuf python3-venv python3-yaml sed strace tar util-linux zsh)
	shift
fi
if [ $# -ne 1 ]; then
	echo "usage: tools/arm64-root.sh [--system] DIR" >&2
	exit 2
fi
root=$(realpath -m "$1")
cd "$(dirname "$0")/.."
sources=/etc/apt/sources.list.d/debian.sources
[ -e "$sources" ] || sources=/etc/apt/sources.list
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
mkdir -p "$root" "$state"/lists/partial "$state"/cache/archives/partial
: >"$state/status"

# A package database of its own, so that arm64 packages replace none of this machine's.
apt=(apt-get -qq
	-o APT::Architecture=arm64 -o APT::Architectures=arm64
	-o APT::Install-Recommends=false -o Debug::NoLocking=true
	-o Dir::State="$state" -o Dir::State::status="$state/status"
	-o Dir::State::lists="$state/lists" -o Dir::Cache="$state/cache"
	-o Dir::Etc::sourcelist="$sources" -o Dir::Etc::sourceparts=/dev/null)
[ "$(id -u)" -ne 0 ] || apt+=(-o APT::Sandbox::User=root)
"${apt[@]}" update
"${apt[@]}" --yes --download-only install "${packages[@]}"

# Writes the files that dpkg-shlibdeps reads: the package of each library, and symbol versions.
describe() {
	local name control
	name=$(dpkg-deb -f "$1" Package)
	[ "$(dpkg-deb -f "$1" Multi-Arch)" != same ] || name=$name:arm64
	control=$(mktemp -d "$state/control.XXXXXX")
	dpkg-deb -e "$1" "$control"
	dpkg-deb --fsys-tarfile "$1" | tar --list | sed "s|^\.|$root|; s|/$||; s|$root/lib/|$root/usr/lib/|" \
		>"$info/$name.list"
	for file in symbols shlibs; do
		[ ! -e "$control/$file" ] || cp "$control/$file" "$info/$name.$file"
	done
	sed '/^Package:/a Status: install ok installed' "$control/control" >>"$info/../status"
	echo >>"$info/../status"
}

info=$root/var/lib/dpkg/info
mkdir -p "$root"/usr/bin "$root"/usr/sbin "$root"/usr/lib "$info"
: >"$info/../status"
echo 1 >"$info/format"
for folder in bin sbin lib; do
	ln -sfn "usr/$folder" "$root/$folder"
done
for package in "$state"/cache/archives/*.deb; do
	dpkg-deb --fsys-tarfile "$package" |
		tar --extract --keep-directory-symlink --no-same-owner -C "$root"
	describe "$package"
done

# Package scripts do not run, so links of update-alternatives are missing.
[ ! -e "$root/usr/bin/gawk" ] || ln -sfn gawk "$root/usr/bin/awk"

# Programs of both processors preload it by the same name: tools/arm64-emulate.sh.
calls=$root/usr/lib/emulation
mkdir -p "$calls"/aarch64 "$calls"/x86_64
aarch64-linux-gnu-gcc --sysroot="$root" -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -fvisibility=hidden \
	-shared -fPIC -o "$calls/aarch64/qemu_calls.so" tests/emulation/qemu_calls.c
gcc -shared -o "$calls/x86_64/qemu_calls.so" -x c /dev/null
# glibc before 2.37 calls x86-64 by the name of the processor's generation.
for platform in haswell xeon_phi; do
	ln -sfn x86_64 "$calls/$platform"
done
echo "arm64-root: $(find "$state"/cache/archives -name '*.deb' | wc -l) packages in $root"
