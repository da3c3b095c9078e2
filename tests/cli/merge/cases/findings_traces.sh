# SPDX-License-Identifier: Apache-2.0
# The steps of the real traces, and their findings, as in the table of docs/FINDINGS.md.
traces=$tests/../../../samples/traces
for log in "$traces"/*.xtr "$traces"/h200-idle; do
	name=$(basename "$log" .xtr)
	merge -q --no-recover --summary out.json "$log" >status
	grep -v "exit status 0" status || true
	python3 -c 'import json, sys
out = json.load(open("out.json"))
print(sys.argv[1], out["headline"].get("steps", {}).get("text", "no steps"), sep=": ", file=sys.stderr)
ids = [row["id"] for row in out["findings"]["rows"]]
assert len(ids) == len(set(ids)), ids
for row in out["findings"]["rows"] or [None]:
    print(sys.argv[1], *([row["rule"], "%.1f %%" % (100 * row["cost_ns"] / row["whole_ns"]), row["where"]] if row else ["nothing"]), sep=" | ")' "$name"
done >found 2>steps
cat steps found
sed -n 's/^| `\(h[12]00-[^`]*\)` | \([^|]*\) | \([^|]*\) | `*\([^`|]*\)`* |.*/\1 | \2 | \3 | \4/p; s/^| `\(h[12]00-[^`]*\)` | \(nothing\) |.*/\1 | nothing/p' "$tests/../../../docs/FINDINGS.md" | sort -u | sed 's/ *$//; s/`//g' >told
sort -u found | diff - told && echo "the document says the same"
