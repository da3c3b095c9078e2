# SPDX-License-Identifier: Apache-2.0
# A log that expands beyond the limits of docs/internals/LOG_FORMAT.md is rejected and left
# unchanged; other logs are still read.
without_numbers() {
	sed 's/[0-9]\{2,\}/N/g'
}
make_log expanding bomb.xtr 1200000
test "$(wc -c <bomb.xtr)" -lt 20000
merge bomb.xtr --folded - 2>&1 | without_numbers
cp bomb.xtr same.xtr
merge bomb.xtr --embed-symbols 2>&1 | without_numbers
cmp bomb.xtr same.xtr
make_log normal good.xtr
merge bomb.xtr good.xtr --folded - 2>/dev/null
XTRACE_LOG_LIMITS=0
export XTRACE_LOG_LIMITS
merge bomb.xtr --folded -
