#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs both commands of the README on a bare Debian 12, from a fresh clone of the last commit.
# debootstrap creates the system, without a compiler. The clone has a path of 150 characters, in a
# folder that other users may not enter, and busy loops take processor time from the tests.
# Needs root, debootstrap, git, 10 GB in $TMPDIR and an hour or two. -k keeps the system in DIR.
set -eu

repository=$(cd "$(dirname "$0")/.." && pwd)
home=/root # in the bare system
clone=$home/$(printf '%0137d' 0)/xtrace
system=
keep=
loops=
cleanup() {
	[ -z "$loops" ] || kill $loops 2>/dev/null || :
	[ -n "$keep" ] || rm -rf "$system"
}
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
mkdir -p "$system"
chmod 755 "$system" # it will be the root of all users
trap cleanup EXIT

# Use this machine's Debian mirror if it has one.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list \
	2>/dev/null | sed -nE 's/^(URIs:|deb( \[.*\])?) *(https?:[^ ]*debian\/?)( .*)?$/\3/p' | head -n 1)

echo "== A bare Debian 12 in $system"
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
# npm trusts what it trusts here.
certificates=${NODE_EXTRA_CA_CERTS:+NODE_EXTRA_CA_CERTS=$home/certificates.pem}
[ -z "$certificates" ] || cp "$NODE_EXTRA_CA_CERTS" "$system/root/certificates.pem"
if chroot "$system" sh -c 'command -v gcc || command -v cmake'; then
	echo "check-clean: this is not bare" >&2
	exit 1
fi

echo "== A fresh clone of $(git -C "$repository" rev-parse --short HEAD)"
git clone -q --no-hardlinks "$repository" "$system$clone"

# A private mount namespace, so that no mount is left behind.
inside() {
	unshare --mount sh -eu -c '
		mount --bind "$1" "$1" # tests make namespaces, whose root must be a mount
		mount -t proc proc "$1/proc"
		mkdir -p "$1/dev/pts"
		mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
		ln -sf pts/ptmx "$1/dev/ptmx"
		system=$1 clone=$2 certificates=$3
		shift 3
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 $certificates \
			chroot "$system" sh -eu -c "cd $clone && $*"' \
		sh "$system" "$clone" "$certificates" "$@"
}

echo "== tools/demo.sh"
inside tools/demo.sh
echo "== tools/demo.sh, once more"
inside "tools/demo.sh >/dev/null"
if [ -e "$system$clone/build" ]; then
	echo "check-clean: the demo configured build/ without tests" >&2
	exit 1
fi
for left in xtrace.data/info.json demo.html demo.folded demo.trace.json; do
	if [ ! -s "$system$clone/demo-out/$left" ]; then
		echo "check-clean: demo-out/$left was not left" >&2
		exit 1
	fi
done
echo "== tools/test.sh, beside four busy loops"
for _ in 1 2 3 4; do
	timeout 12h sh -c 'while :; do :; done' &
	loops="$loops $!"
done
inside tools/test.sh
echo "== Both commands work on a bare Debian 12."
