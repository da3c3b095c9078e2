# SPDX-License-Identifier: Apache-2.0
# xtrace history rejects wrong usage before it reads runs.
history() {
	status=0
	"$xtrace_program" history "$@" || status=$?
	echo "exit status $status"
}
history
history runs --json same --csv same
history runs --json same.json -o same.json
history runs --csv -
history runs --html missing/page.html
history runs -o page.pdf
history runs --text ''
