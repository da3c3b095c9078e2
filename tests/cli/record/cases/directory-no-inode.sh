# SPDX-License-Identifier: Apache-2.0
# If the new directory cannot be created, the older trace is restored.
unshare -m true 2>/dev/null || {
	echo "mount namespaces cannot be made here" >&2
	exit 77
}
mkdir small
unshare -m sh -c 'mount -t tmpfs -o nr_inodes=8,mode=700 none small || exit 77
	cd small
	"$1" record --simulate "$2" --tokens 1 >/dev/null 2>&1
	i=0
	while [ $i -lt 10 ] && touch filler-$i 2>/dev/null; do i=$((i + 1)); done
	"$1" record true
	echo "status $?"
	rm filler-*
	ls . xtrace.data | sed "s/.*\\.xtr/LOG/"' sh "$xtrace" "$sample"
