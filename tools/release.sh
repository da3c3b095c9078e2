#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds and checks everything that a release consists of.
#
#   tools/release.sh [--no-check] VERSION [OUT_DIR]
#
# OUT_DIR (default: build-release) then contains the tarball, the wheel, the Debian package, the
# licences of bundled libraries, a bill of materials (SPDX), the release notes and SHA256SUMS.
# The packages are installed and used in bare systems: Debian 11 (glibc 2.31) and 12. Needs root,
# debootstrap, Debian's mirror, and the packages of tools/install-deps.sh --portable --lint.
# XTRACE_MAINTAINER="NAME <ADDRESS>" names the maintainer of the Debian package.
set -eu

checks=yes
if [ "${1-}" = --no-check ]; then
	checks=no
	shift
fi
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
	sed -n '3,11s/^# \{0,1\}//p' "$0" >&2
	exit 2
fi
version=$1
source=$(cd "$(dirname "$0")/.." && pwd)
out=${2:-$source/build-release}
umask 022
fail() {
	echo "release: $*" >&2
	exit 1
}

[ -n "${XTRACE_MAINTAINER-}" ] || fail "set XTRACE_MAINTAINER to 'NAME <ADDRESS>'"
mkdir -p "$out"
out=$(cd "$out" && pwd)
[ -z "$(ls "$out")" ] || fail "$out is not empty"
cd "$source"
grep -q "^project(xtrace VERSION $version " CMakeLists.txt ||
	fail "CMakeLists.txt has another version than $version"
notes=$(awk -v version="$version" '$1 == "##" { inside = $2 == version } inside' CHANGELOG.md)
[ -n "$notes" ] || fail "CHANGELOG.md has no section '## $version'"
[ -z "$(git status --porcelain)" ] || fail "there are changes that are not committed"
case $notes in
*"(unreleased)"*) [ $checks = no ] || echo "release: the notes still say (unreleased)" >&2 ;;
esac
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
seconds=$(git log -1 --format=%ct)
name=xtrace-$version
machine=$(uname -m)

tree=$scratch/$name-linux-$machine
tools/portable.sh "$tree"
tar -C "$scratch" --sort=name --mtime="@$seconds" --owner=0 --group=0 --numeric-owner \
	-cf "$scratch/tar" "${tree##*/}"
gzip -9n <"$scratch/tar" >"$out/${tree##*/}.tar.gz"
tools/wheel/build.py "$tree" "$out"
tools/deb.sh "$out" "-DXTRACE_MAINTAINER=$XTRACE_MAINTAINER"
tools/portable/sbom.py "$tree" "$(git rev-parse HEAD)" "$(date -u -d "@$seconds" +%FT%TZ)" \
	>"$out/$name.spdx.json"
page=build-portable/build/src/report/node_modules
for file in LICENSE "$tree"/share/doc/xtrace/private-libraries/copyright.* \
	$(cd $page && ls -d preact @preact/* d3-array internmap | sed "s|.*|$page/&/LICENSE|"); do
	printf '==== %s ====\n\n' "${file#"$tree/share/doc/xtrace/private-libraries/"}"
	cat "$file"
	printf '\n'
done | sed "s|^==== $page/|==== npm: |" >"$out/$name-licences.txt"
printf '%s\n' "$notes" >"$out/$name-notes.md"

if [ $checks = yes ]; then
	tools/check-old-system.sh "$tree"
	tools/check-packages.sh "$out"
	tools/check-deb.sh "$out"/xtrace-gpu_*.deb
	lintian --fail-on error,warning "$out"/xtrace-gpu_*.deb
	if command -v buildah >/dev/null; then
		tools/container/check.py "$tree"
	else
		echo "release: no buildah, so the container was not checked"
	fi
fi
(cd "$out" && sha256sum -- * >"$scratch/SHA256SUMS" && mv "$scratch/SHA256SUMS" .)
ls -l "$out"
echo "release: built $version in $out"
[ $checks = yes ] || echo "release: not checked"
echo "release: still to do on a GPU: share/xtrace/gpu-check.sh of the tarball"
