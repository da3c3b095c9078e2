# SPDX-License-Identifier: Apache-2.0
# Prints help on stdout.
status "$xtrace" help
status "$xtrace" --help
status "$xtrace" help record
status "$xtrace" record --help
status "$xtrace" help version
status "$xtrace" --version
