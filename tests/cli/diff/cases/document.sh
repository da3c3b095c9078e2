# SPDX-License-Identifier: Apache-2.0
# The JSON document conforms to its schema, and its numbers are consistent.
seeds="1 2 3 4 5"
make_runs a -v lambda=1
make_runs b -v lambda=2 -v slow=1.2 -v launches=2 -v sync=1 -v copy=1 -v wrapper=1
diff_runs a1.xtr,a2.xtr,a3.xtr,a4.xtr,a5.xtr b1.xtr,b2.xtr,b3.xtr,b4.xtr,b5.xtr --json json --text text
diff_runs a1.xtr b1.xtr --json one.json
diff_runs a1.xtr nothing --json none.json
/usr/bin/python3 - "$tests/../../../docs/diff.schema.json" <<-END
	import json, sys
	import jsonschema
	schema = json.load(open(sys.argv[1]))
	for name in "json", "one.json", "none.json":
	    jsonschema.validate(json.load(open(name)), schema)
	document = json.load(open("json"))
	paths = [row for row in document["rows"] if row["level"] == "path"]
	total = next(row for row in document["rows"] if row["key"] == "gpu-time")
	for row in document["rows"]:
	    value = row["value"]
	    parts = row["change_by_each"] + row["change_by_count"]
	    assert abs(value["new"] - value["base"] - parts) <= 1e-6 * (abs(value["new"]) + 1), row
	for side in "base", "new":
	    whole = sum(row["value"][side] for row in paths)
	    assert abs(whole - total["value"][side]) <= 1e-6 * whole, side
	for row in document["rows"]:
	    if row["level"] in ("path", "call") and row["changes"]:
	        print(row["key"].split(";")[-1], row["key"].split(";")[-3], *row["changes"])
	print(document["outcome"], len(paths), "paths")
END
