# SPDX-License-Identifier: Apache-2.0
# 127 and 126, as in a shell; no directory is made, none is moved.
status "$xtrace" record no-such-command-anywhere
status "$xtrace" record ./no-such-file
echo text >plain
status "$xtrace" record ./plain
status "$xtrace" record .
printf '#!/no/such/interpreter\n' >script
chmod +x script
ls
status "$xtrace" record ./script
