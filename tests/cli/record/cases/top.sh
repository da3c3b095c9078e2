# SPDX-License-Identifier: Apache-2.0
# xtrace top rejects wrong usage, and needs a terminal unless it prints once.
status "$xtrace" top
status "$xtrace" top --once one two
status "$xtrace" top --once --interval never
status "$xtrace" top --once nowhere
status "$xtrace" top --json 4194305
status "$xtrace" top --once --interval 10ms .
status "$xtrace" top --json --interval 10ms . | sed 's/"window_ns":.*/"window_ns": NS/'
status "$xtrace" top --help
