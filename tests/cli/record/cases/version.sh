# SPDX-License-Identifier: Apache-2.0
# The versions that the program was built from. A build without node has no page.
"$xtrace" version
"$xtrace" version --verbose | sed -E 's/^(commit +).*/\1COMMIT/; s/[0-9]+(\.[0-9]+)+/VERSION/; s/^(HTML report +)no$/\1yes/'
status "$xtrace" version more
