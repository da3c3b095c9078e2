#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Four commits, of which the third makes the kernels twice as long: git bisect run finds it.
# Usage: bisect_test.sh XTRACE PROGRAM
set -eu
xtrace=$1
program=$2
command -v git >/dev/null || exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a \
	GIT_COMMITTER_EMAIL=a@b
git init -q "$folder/slow"
cd "$folder/slow"
for commit in 1 2 3 4; do
	ns=100000
	[ $commit -lt 3 ] || ns=200000
	printf '#!/bin/sh\n# %s\nXTRACE_SIMGPU_KERNEL_NS=%s:%s exec "%s" --tokens 2\n' \
		$commit $ns $ns "$program" >step
	chmod +x step
	git add step
	git commit -q -m "commit $commit"
done
git worktree add -q ../fast HEAD~3
git bisect start HEAD HEAD~3 >/dev/null
git bisect run sh -c '"$0" bench --simulate -n 3 -o ../bench --vs ../fast/step ./step; s=$?
	[ $s = 2 ] && exit 125; exit $s' "$xtrace" >../output 2>&1 || { cat ../output; exit 1; }
grep -q 'is the first bad commit' ../output && grep -q '    commit 3$' ../output || {
	cat ../output
	exit 1
}
