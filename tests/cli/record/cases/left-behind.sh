# SPDX-License-Identifier: Apache-2.0
# What the program leaves running is not waited for.
status "$xtrace" record sh -c 'sleep 300 >/dev/null 2>&1 & echo $! >pid; echo started'
kill "$(cat pid)" && echo "was still there"
