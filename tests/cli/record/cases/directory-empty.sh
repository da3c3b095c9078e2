# SPDX-License-Identifier: Apache-2.0
# Uses an empty directory. A new directory is accessible to the user only.
mkdir empty
status "$xtrace" record -o empty/ echo ran
status "$xtrace" record --output=new --simulate "$sample" --tokens 1 2>/dev/null | tail -n 1
ls
stat -c %a new
