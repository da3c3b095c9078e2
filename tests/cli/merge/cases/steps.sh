# SPDX-License-Identifier: Apache-2.0
# Steps of generated logs: the headline, and lines whose times add up to those of the budget.
. "$tests/cases/findings.inc"
ranges() { # BODY-OF-A-PYTHON-LOOP: each step in an NVTX range
	echo "print(f'push 1 {t - 500} 0 step'); $1; print(f'pop 1 {t + 99000}')"
}
steps() {
	merge "$@" -q --summary out.json
	python3 -c 'import json
out = json.load(open("out.json"))
steps, budget, lines = out["headline"]["steps"], out["budget"]["rows"], out["lines"]["rows"]
print(steps["text"])
for name, column, of in (("busy", "step_gpu_ns", ("compute", "coll", "cop")), ("idle", "step_idle_ns", ("idle",))):
    whole = sum(row["total_ns"] for row in budget if row["part"].startswith(of)) // steps["step_count"]
    print(name, "per step:", whole, "of lines:", sum(row[column] for row in lines))
print("lines with more than their part:", [row["part"] for row in budget if row["line_ns"] > row["total_ns"]])'
}
echo "-- the gap before the first step after the warm-up is only in part idle time of that step"
make border.xtr "t += 50000000 * (i >= 50); $(ranges 'kernel(t, t + 5000, 60000)')"
steps border.xtr --warmup 50
echo "-- one step is in the singular"
steps border.xtr --warmup 99
echo "-- a step after the warm-up is kept"
merge border.xtr --summary out.json --warmup 1000
merge border.xtr --warmup -1
echo "-- a GPU with work in a few steps has none, and its work is not that of a step"
make few.xtr "i or print('stream 2 1 2 7'); $(ranges 'kernel(t, t + 5000, 60000); i % 5 or kernel(t + 6000, t + 10000, 30000, 2, "other")')"
steps few.xtr --warmup 50
echo "-- processes that share a GPU do not make several of it"
mkdir shared
for rank in 0 1 2; do
	make shared/$rank.xtr "i or print('meta gpu.0.uuid a'); $(ranges 'kernel(t, t + 5000, 20000)')"
done
steps shared --warmup 50
echo "-- steps beyond those with rows count"
make many.xtr "t = 1000 + i * 800000; [kernel(t + k * 1000 + late, t + k * 1000 + 100 + late, 500) for k in range(800) for late in [50 * (i == 90 and k == 7)]]"
steps many.xtr --warmup 5000
echo "-- the report of a part of the work has no steps, and no cost of steps"
make idle.xtr "$(ranges 'kernel(t, t + 5000, 10000)')"
merge idle.xtr -q | grep -c "per step"
merge idle.xtr -q --focus step | grep "per step" || echo "nothing per step"
