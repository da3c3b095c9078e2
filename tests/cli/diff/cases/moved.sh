# SPDX-License-Identifier: Apache-2.0
# Another number of a lambda is no other path; a function more on the way is the same path, moved.
make_runs a -v lambda=1
make_runs b -v lambda=2 -v wrapper=1
diff_runs a1.xtr,a2.xtr,a3.xtr b1.xtr,b2.xtr,b3.xtr --text text --json json
sed -n '/^GPU time by call path/,/^$/p' text
python3 - <<-END
	import json
	rows = json.load(open("json"))["rows"]
	for row in rows:
	    if row["level"] == "path" and ("lambda" in row["key"] or row["moved"]):
	        print(row["key"], row["changes"], "moved" if row["moved"] else "the same")
	print(sum(row["level"] == "path" for row in rows), "paths")
END
