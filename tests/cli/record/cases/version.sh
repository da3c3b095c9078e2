# SPDX-License-Identifier: Apache-2.0
# The versions that the program was built from.
"$xtrace" version
"$xtrace" version --verbose | sed -E 's/^(commit +).*/\1COMMIT/; s/[0-9]+(\.[0-9]+)+/VERSION/'
status "$xtrace" version more
