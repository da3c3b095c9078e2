# SPDX-License-Identifier: Apache-2.0
# Does not wait for background processes of the program.
status "$xtrace" record sh -c 'sleep 300 >/dev/null 2>&1 & echo $! >pid; echo started'
kill "$(cat pid)" && echo "was still there"
