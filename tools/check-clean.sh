#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs both commands of the README on a bare Debian 12, from a fresh clone of the last commit.
# debootstrap creates the system, without a compiler. Needs root, debootstrap, git, a gigabyte in
# $TMPDIR and some minutes. -k keeps the system in DIR.
set -eu

repository=$(cd "$(dirname "$0")/.." && pwd)
system=
keep=
while getopts k: option; do
	case $option in
	k)
		system=$OPTARG
		keep=yes
		;;
	*)
		echo "usage: tools/check-clean.sh [-k DIR]" >&2
		exit 2
		;;
	esac
done

for tool in debootstrap git unshare; do
	if ! command -v $tool >/dev/null; then
		echo "check-clean: $tool is missing" >&2
		exit 2
	fi
done
if [ "$(id -u)" -ne 0 ]; then
	echo "check-clean: this needs root, for debootstrap and chroot" >&2
	exit 2
fi
[ -n "$system" ] || system=$(mktemp -d)
chmod 755 "$system" # it will be the root of all users
[ -n "$keep" ] || trap 'rm -rf "$system"' EXIT

# Use this machine's Debian mirror if it has one.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list \
	2>/dev/null | sed -nE 's/^(URIs:|deb( \[.*\])?) *(https?:[^ ]*debian\/?)( .*)?$/\3/p' | head -n 1)

echo "== A bare Debian 12 in $system"
mkdir -p "$system"
debootstrap --variant=minbase bookworm "$system" "${mirror:-http://deb.debian.org/debian}" \
	>"$system.log" 2>&1 || {
	tail -n 20 "$system.log"
	exit 1
}
rm -f "$system.log"
if [ "$(. /etc/os-release && echo "${VERSION_CODENAME:-}")" = bookworm ]; then
	rm -f "$system/etc/apt/sources.list"
	for part in sources.list sources.list.d apt.conf.d; do
		[ ! -e "/etc/apt/$part" ] || cp -r "/etc/apt/$part" "$system/etc/apt/"
	done
fi
cp /etc/resolv.conf "$system/etc/resolv.conf"
if chroot "$system" sh -c 'command -v gcc || command -v cmake'; then
	echo "check-clean: this is not bare" >&2
	exit 1
fi

echo "== A fresh clone of $(git -C "$repository" rev-parse --short HEAD)"
git clone -q --no-hardlinks "$repository" "$system/src/xtrace"

# A private mount namespace, so that no mount is left behind.
inside() {
	unshare --mount sh -eu -c '
		mount -t proc proc "$1/proc"
		mkdir -p "$1/dev/pts"
		mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
		ln -sf pts/ptmx "$1/dev/ptmx"
		system=$1
		shift
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
			chroot "$system" sh -eu -c "cd /src/xtrace && $*"' sh "$system" "$@"
}

echo "== tools/demo.sh"
inside tools/demo.sh
echo "== tools/demo.sh, once more"
inside "tools/demo.sh >/dev/null"
for left in xtrace.data/info.json demo.html demo.folded demo.trace.json; do
	if [ ! -s "$system/src/xtrace/demo-out/$left" ]; then
		echo "check-clean: demo-out/$left was not left" >&2
		exit 1
	fi
done
echo "== tools/test.sh"
inside tools/test.sh
echo "== Both commands work on a bare Debian 12."
