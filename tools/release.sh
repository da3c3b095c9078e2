#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds and checks everything that a release consists of.
#
#   XTRACE_MAINTAINER="NAME <ADDRESS>" tools/release.sh [--no-check] VERSION [OUT_DIR]
#
# OUT_DIR (default: build-release) then contains the tarball, the wheel, the Debian package, the
# licences of bundled libraries, a bill of materials (SPDX), the release notes and SHA256SUMS.
# The packages are installed and used in bare systems: Debian 11 (glibc 2.31) and 12. --no-check
# leaves that out, and needs no root.
#
# This installs missing packages of Debian (tools/install-deps.sh --release). All else is checked at
# the start:
# - Debian 12 on x86-64, and root
# - XTRACE_MAINTAINER names the maintainer of the Debian package
# - VERSION is the version in CMakeLists.txt, and CHANGELOG.md has a section with this heading
# - all changes are committed
# - OUT_DIR is empty, or does not exist
#
# Debian's mirror (DEBIAN_MIRROR) and npm's registry have to be reachable.
set -eu

checks=yes
if [ "${1-}" = --no-check ]; then
	checks=no
	shift
fi
if [ $# -lt 1 ] || [ $# -gt 2 ] || [ "${1#-}" != "$1" ]; then
	sed -n '/^# Builds/,/^set/s/^# \{0,1\}//p' "$0" >&2
	exit 2
fi
version=$1
source=$(cd "$(dirname "$0")/.." && pwd)
out=${2:-$source/build-release}
umask 022

problems=
problem() {
	problems="$problems
  - $*"
}
stop_at_problems() {
	[ -n "$problems" ] || return 0
	echo "release: cannot start:$problems" >&2
	exit 1
}
check_commit() {
	local changes

	if ! changes=$(git -C "$source" status --porcelain 2>&1); then
		problem "git does not know the commit: $(echo "$changes" | head -n 1)"
	elif [ -n "$changes" ]; then
		problem "there are changes that are not committed: see git status"
	fi
}

case $(. /etc/os-release && echo "${VERSION_CODENAME-}") in
bookworm) ;;
*) problem "this is not Debian 12" ;;
esac
[ "$(uname -m)" = x86_64 ] || problem "there is no recipe for $(uname -m), only for x86_64"
[ $checks = no ] || [ "$(id -u)" -eq 0 ] ||
	problem "only root can try the packages in bare systems; --no-check leaves that out"
case ${XTRACE_MAINTAINER-} in
?*' <'?*@?*'>') ;;
*) problem "XTRACE_MAINTAINER is not set to 'NAME <ADDRESS>'" ;;
esac
[ ! -e "$out" ] || { [ -d "$out" ] && [ -z "$(ls "$out")" ]; } || problem "$out is not an empty folder"
grep -q "^project(xtrace VERSION $version " "$source/CMakeLists.txt" ||
	problem "CMakeLists.txt has another version than $version"
notes=$(awk -v version="$version" '$1 == "##" { inside = $2 == version } inside' \
	"$source/CHANGELOG.md")
[ -n "$notes" ] || problem "CHANGELOG.md has no section '## $version'"
! command -v git >/dev/null || check_commit
stop_at_problems

"$source/tools/install-deps.sh" --release
check_commit # also if git was missing
stop_at_problems
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$source"
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
echo "release: still to do on a GPU: tests/gpu/check.sh --xtrace TARBALL/bin/xtrace"
