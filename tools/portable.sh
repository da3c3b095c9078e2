#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds an installed tree of xtrace that runs with glibc 2.28 and newer.
#
#   tools/portable.sh OUT_DIR [CACHE_DIR]
#
# Needs Debian 12 with the packages of tools/install-deps.sh --portable, and Debian's mirror
# (DEBIAN_MIRROR). Debian's libraries need glibc 2.36, so their sources are built again, against
# the glibc of Debian 11. CACHE_DIR (default: build-portable) stores these sources and libraries. It
# builds them again if a package, the compiler or a recipe changes. The same packages and commit
# give the same bytes.
# docs/internals/PORTABLE.md explains the design.
set -eu

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
	sed -n '3,11s/^# \{0,1\}//p' "$0" >&2
	exit 2
fi
source=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1" "${2:-$source/build-portable}"
out=$(cd "$1" && pwd)
cache=$(cd "${2:-$source/build-portable}" && pwd)
if [ -n "$(ls "$out")" ]; then
	echo "portable: $out is not empty" >&2
	exit 2
fi

. "$source/tools/portable/apt.sh"
glibc=2.28
security=${DEBIAN_SECURITY_MIRROR:-$mirror-security}
sysroot_packages='libc6 libc6-dev linux-libc-dev'
source_packages='cjson elfutils libevent libiberty libunwind libzstd protobuf-c sqlite3 xz-utils zlib'

export LC_ALL=C TZ=UTC SHELL=/bin/sh
SOURCE_DATE_EPOCH=$(git -C "$source" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
umask 022

apt=$cache/apt
private_apt "$apt" "deb-src [$signed] $mirror bookworm main" \
	"deb-src [$signed] $security bookworm-security main"
# Fetches a package into $cache/sources and prints it with its version. A mirror may announce a
# version that it does not have: then the next older one is taken.
fetch_source() {
	for version in $(apt-cache madison "$1" | awk '/Sources/ { print $3 }' | sort -rVu); do
		said=$(cd "$cache/sources" && apt-get -qq source --download-only "$1=$version" 2>&1) && {
			echo "$1=$version"
			return
		}
		echo "$said" | grep -q ' 404 ' || break
		echo "portable: warning: the mirror does not have $1 $version" >&2
	done
	echo "portable: cannot fetch the source of $1: ${said-no version}" >&2
	return 1
}
mkdir -p "$cache/sources"
versions=
for package in $source_packages; do
	versions="$versions $(fetch_source "$package")"
done
# URL, name, size and signed checksum of each package.
{
	apt-get -qq download --print-uris $sysroot_packages
	apt-get -qq source --download-only --print-uris $versions
} | grep "^'" | sort >"$apt/packages"
key=$({
	cat "$apt/packages" "$source/tools/portable.sh" "$source/tools/portable/libraries.sh"
	gcc --version
	ld --version
} | sha256sum | cut -c 1-16)
libraries=$cache/libraries-$key
# With --sysroot alone, gcc finds this machine's crt1.o and libc.so beside itself. -B precedes.
system="--sysroot=$libraries/sysroot -B$libraries/sysroot/usr/lib/$triplet"
export libraries system

if [ ! -e "$libraries/packages" ]; then
	echo "portable: building the libraries in $libraries"
	rm -rf "$cache"/libraries-*
	mkdir -p "$libraries/debs" "$libraries/src" "$libraries/prefix"
	(
		cd "$libraries/debs"
		apt-get -qq download $sysroot_packages
		for deb in *.deb; do
			dpkg-deb -x "$deb" "$libraries/sysroot"
		done
		for description in $(awk '$2 ~ /[.]dsc$/ { print $2 }' "$apt/packages"); do
			dpkg-source --no-check -q -x "$cache/sources/$description" \
				"$libraries/src/${description%%_*}"
		done
	)
	sh -eu "$source/tools/portable/libraries.sh" >"$libraries/log" 2>&1 || {
		tail -n 20 "$libraries/log" >&2
		echo "portable: cannot build the libraries, see $libraries/log" >&2
		exit 1
	}
	rm -rf "$libraries/src" "$libraries/debs"
	cp "$apt/packages" "$libraries/packages"
fi

build=$cache/build
rm -rf "$build"
# Programs are linked with their final RPATH, because the build ID covers it. It leads here.
mkdir -p "$build/lib/xtrace"
ln -s "$libraries"/prefix/lib/lib*.so.* "$build/lib/xtrace"
flags="$system -isystem $libraries/prefix/include -include $source/tools/portable/old_math.h"
flags="$flags -ffile-prefix-map=$source=. -ffile-prefix-map=$cache=/cache"
# pkg-config must not see this machine's libraries. --allow-shlib-undefined: this machine's
# libgcc_s needs a newer glibc than the sysroot has.
export PKG_CONFIG_LIBDIR="$libraries/prefix/lib/pkgconfig"
cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DXTRACE_WERROR=ON \
	-DXTRACE_MPI=OFF -DBUILD_TESTING=OFF -DXTRACE_HTML=ON -DCMAKE_C_FLAGS="$flags" \
	-DCMAKE_EXE_LINKER_FLAGS=-Wl,--allow-shlib-undefined -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON \
	-DCMAKE_PREFIX_PATH="$libraries/prefix" -DXTRACE_LICENCES="$libraries/prefix/share/doc" \
	>"$build.log" 2>&1 &&
	ninja -C "$build" >>"$build.log" 2>&1 &&
	cmake --install "$build" --prefix "$out" >>"$build.log" 2>&1 || {
	tail -n 20 "$build.log" >&2
	echo "portable: cannot build xtrace, see $build.log" >&2
	exit 1
}
# Samples keep their symbols, as programs that users trace do.
find "$out/bin" "$out/lib" -type f \( -name xtrace -o -name '*.so*' \) -exec strip --strip-unneeded {} +
awk '{ print $4, $2 }' "$libraries/packages" >"$out/share/doc/xtrace/private-libraries/packages"
find "$out" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
"$source/tools/check-portable.py" --glibc $glibc "$out"
