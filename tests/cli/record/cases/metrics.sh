# SPDX-License-Identifier: Apache-2.0
# xtrace serve rejects wrong addresses, and says what it waits for.
status "$xtrace" serve
status "$xtrace" serve data
for address in 70000 x 1.2.3.4 :80 '[::1]' ::1:80 '[]:80' -1 ''; do
	status "$xtrace" serve --metrics "$address"
done
status "$xtrace" serve --metrics 0 --keep never
status "$xtrace" serve --metrics 0 --metrics 0
status timeout -s INT 0.5 "$xtrace" serve --metrics 0 data | sed 's/:[0-9]*\/metrics/:PORT\/metrics/'
status "$xtrace" serve --help
ls
