# SPDX-License-Identifier: Apache-2.0
# Times in steps have one base: the budget, the findings and the lines of all traces agree.
traces=$tests/../../../samples/traces
for log in "$traces"/*; do
	[ "${log##*/}" = README.md ] && continue
	merge -q --no-recover --summary out.json "$log" >status
	grep -v "exit status 0" status || true
	python3 -c 'import json, sys
out = json.load(open("out.json"))
name, steps = sys.argv[1], out["headline"].get("steps")
if not steps:
    sys.exit(print(name, "no steps"))
idle_ns = sum(row["total_ns"] for row in out["budget"]["rows"] if row["part"].startswith("idle: "))
for row in out["findings"]["rows"]:
    if row.get("step_ns") is None or row["rule"] in ("late-rank", "hang"):
        continue
    assert row["whole_ns"] <= steps["wall_ns"], (name, row)
    if "gpu_idle_ns" in row["evidence"] or row["rule"] == "short-kernels":
        assert row["cost_ns"] <= idle_ns, (name, row, idle_ns)
lines = [row["step_idle_ns"] or 0 for row in out["lines"]["rows"]]
assert abs(sum(lines) * steps["step_count"] - idle_ns) <= len(lines) * steps["step_count"], (name, sum(lines), idle_ns)
print(name, "agrees")' "$(basename "$log" .xtr)" || true
done
# The same line has most of the idle time everywhere: the innermost one of the CPU samples.
merge -q --no-recover --summary out.json "$traces/h200-idle" >status
python3 -c 'import json
out = json.load(open("out.json"))
print("budget ", max((r for r in out["budget"]["rows"] if r["part"].startswith("idle: ")), key=lambda r: r["total_ns"])["line"])
print("finding", out["findings"]["rows"][0]["where"])
line = max(out["lines"]["rows"], key=lambda r: r["step_idle_ns"] or 0)
print("lines  ", line["function"], line["line"])'
