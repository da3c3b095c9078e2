# SPDX-License-Identifier: Apache-2.0
# A directory in use by a recording is not used by another one, even under another name. A
# background process that does not record does not keep it in use.
"$xtrace" record sh -c 'touch started; while [ ! -e go ]; do sleep 0.05; done; sleep 300 &
	echo $! >pid; echo first' >first 2>&1 &
first=$!
while [ ! -e started ]; do
	sleep 0.05
done
status "$xtrace" record echo second
status "$xtrace" record -o ./xtrace.data// echo second
touch go
status wait $first
cat first
ls
status "$xtrace" record echo third
kill "$(cat pid)"
grep -o '"echo".*' xtrace.data/info.json
