# SPDX-License-Identifier: Apache-2.0
# If standard streams are closed, messages are not written to files of the trace.
"$xtrace" record --simulate "$sample" --tokens 1 >/dev/null 2>&-
"$xtrace" record --simulate "$sample" --tokens 2 >/dev/null 2>&-
echo mine >xtrace.data.old/notes
status "$xtrace" record echo third 2>&-
for info in xtrace.data/info.json xtrace.data.old/info.json; do
	python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["command"])' $info
done
