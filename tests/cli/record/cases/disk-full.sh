# SPDX-License-Identifier: Apache-2.0
# If info.json cannot be written, the program does not run, no files are left, and the older trace
# stays.
full() (
	trap '' XFSZ
	ulimit -f 0
	status "$xtrace" record "$@" 2>&1
)
full echo ran | cat
ls
mkdir empty
full -o empty echo ran | cat
ls . empty
"$xtrace" record --simulate "$sample" --tokens 1 >/dev/null 2>&1
full echo ran | cat
ls
grep -o '"--tokens".*' xtrace.data/info.json
