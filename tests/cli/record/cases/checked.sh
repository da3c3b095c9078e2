# SPDX-License-Identifier: Apache-2.0
# check-trace.py accepts the recording and prints its counts. Nothing is lost.
"$xtrace" record --simulate "$sample" --threads 3 --streams 4 --layers 3 --dim 64 --tokens 9 >/dev/null
repository=$here/../../..
status "$repository/tests/tools/check-trace.py" xtrace.data --dump "$repository/tests/tools/xtrace-dump" \
	--merge "$bin/xtrace-merge" --launches-min 1000 | sed -E "s/^([0-9]+ [0-9]+ [0-9]+) .*/\1/"
