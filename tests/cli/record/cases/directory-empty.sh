# SPDX-License-Identifier: Apache-2.0
# An empty directory serves; a new one is for the user alone.
mkdir empty
status "$xtrace" record -o empty/ echo ran
status "$xtrace" record --output=new echo ran
ls
stat -c %a new
