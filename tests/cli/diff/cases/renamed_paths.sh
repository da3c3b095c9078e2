# SPDX-License-Identifier: Apache-2.0
# Another lambda number does not change a path. An additional function on the way renames it.
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
echo "--- rules match either name"
make_runs b -v wrapper=1
for name in 'step/layer_4' 'step/checked'; do
	diff_runs a1.xtr,a2.xtr,a3.xtr b1.xtr,b2.xtr,b3.xtr --fail-on "path($name) > 50%" | verdict_only | sed 1,3d
done
echo "--- even if the old name is gone"
for seed in 1 2 3; do
	profile b$seed | sed 's/"layer_4"/"level_4"/' >b$seed.json
done
diff_runs a1.xtr,a2.xtr,a3.xtr b1.json,b2.json,b3.json --fail-on "path(layer_4) > 50%" | verdict_only | sed 1,3d
