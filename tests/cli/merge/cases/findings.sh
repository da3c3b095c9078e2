# SPDX-License-Identifier: Apache-2.0
# Findings: the output of each rule for a log made for it, and no output for the same log without
# the cause. Costs follow from the rows.
. "$tests/cases/findings.inc"
echo "-- a wait in each step: idle 100 - 60 us, less the first step"
make sync.xtr 'kernel(t, t + 5000, 60000); call("cuStreamSynchronize", "sync", t + 4000, 63000)'
show sync.xtr
echo "-- no wait: the next kernel is there in time"
make ahead.xtr 'kernel(t - 0, t + 5000, 99000)'
show ahead.xtr
echo "-- allocations in each step"
make alloc.xtr 'call("cuMemAlloc_v2", "alloc", t, 30000); kernel(t + 31000, t + 35000, 64000); call("cuMemFree_v2", "free", t + 36000, 20000)'
show alloc.xtr
echo "-- the same, not looked for; and looked for from half of the run on"
show alloc.xtr --finding alloc-loop=off
show alloc.xtr --finding alloc-loop=60
show alloc.xtr --finding all=off
show alloc.xtr --finding all=off --finding alloc-loop=5
echo "-- allocated once, given back at the end"
make once.xtr 'call("cuMemAlloc_v2", "alloc", t, 30000); kernel(t + 31000, t + 35000, 99000)'
show once.xtr
echo "-- ten small copies in a row"
make rows.xtr '[copy(t + k * 5000, t + k * 5000 + 4000, 1000, 256) for k in range(10)]; kernel(t + 50000, t + 54000, 49000)'
show rows.xtr
echo "-- launches every 4 us of kernels of 1 us, which start 7 us after"
make short.xtr '[kernel(t + k * 4000, t + k * 4000 + 7000, 1000) for k in range(25)]'
show short.xtr
echo "-- the same with kernels of 3.9 us, which do not wait"
make queue.xtr '[kernel(t + k * 4000, t + k * 4000 + 7000, 3900) for k in range(25)]'
show queue.xtr
echo "-- code loaded in each step"
make code.xtr 'call("cuModuleLoadData", "code", t, 40000); kernel(t + 41000, t + 45000, 54000)'
show code.xtr
echo "-- processes of one program, each with a GPU of its own; and with one GPU for both"
mkdir ranks
make ranks/0.xtr 'i or print("meta gpu.0.uuid a"); kernel(t, t + 5000, 90000)'
make ranks/1.xtr 'i or print("meta gpu.0.uuid b"); kernel(t, t + 5000, 30000)'
show ranks --finding short-kernels=off --finding gpu-idle=off
make ranks/1.xtr 'i or print("meta gpu.0.uuid a"); kernel(t, t + 5000, 30000)'
show ranks --finding short-kernels=off --finding gpu-idle=off
echo "-- as JSON"
merge sync.xtr -q --summary out.json
python3 - <<'END'
import json
found = json.load(open("out.json"))["findings"]
for row in found["rows"]:
    print(row["rule"], row["severity"], row["cost_ns"], row["whole_ns"], row["where"], row["evidence"],
          row["places"][0]["frames"])
END
echo "-- not a rule"
merge sync.xtr --finding slow=5
for share in lots -5 nan inf 101 5% ''; do
	merge sync.xtr --finding "sync-idle=$share"
done
