# SPDX-License-Identifier: Apache-2.0
# Foreign files are neither overwritten nor removed, and the program does not run.
mkdir theirs nearly
echo precious >theirs/file
echo '{"format": "something else"}' >nearly/info.json
echo precious >plain
status "$xtrace" record -o theirs echo ran
status "$xtrace" record -o nearly echo ran
status "$xtrace" record -o plain echo ran
status "$xtrace" record -o no/such/place echo ran
cat theirs/file nearly/info.json plain
ls
