# SPDX-License-Identifier: Apache-2.0
# An older trace moves aside, in place of a still older one.
"$xtrace" record echo first
"$xtrace" record echo second
"$xtrace" record echo third
grep -o '"echo".*' xtrace.data/info.json xtrace.data.old/info.json
ls
