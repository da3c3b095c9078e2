# SPDX-License-Identifier: Apache-2.0
# The lines of idle time in steps: allocations and loads have the line of their call, the time of
# own code that of its samples. Step 6 loads data for 90 ms, step 8 allocates for 50 ms longer, and
# step 9 loads code.
mkdir run
python3 - <<-'END'
begin, calls, work, samples = 0, [], [], []
now = 1000000
number = 0

def call(api, stack, duration):
    global now, number
    number += 1
    calls.append(f"call {number} 1 {api} {stack} {now} {duration}")
    now += duration

def sample(until, stack):
    samples.append(f"sample 1 {until} 0 1 {stack} 10000000")

for step in range(1, 13):
    calls.append(f"push 1 {now} 0 step-{step}")
    if step == 6:
        for until in range(now + 10000000, now + 90000000, 10000000):
            sample(until, "data")
        now += 90000000
    call("cuMemAlloc_v2", "grow", 51000000 if step == 8 else 1000000)
    call("cuMemAlloc_v2", "small", 20000)
    if step == 9:
        call("cuModuleLoadData", "load", 70000000)
    call("cuLaunchKernel", "launch", 5000)
    work.append(f"kernel {number} 1 matmul {now + 5000} 2000000")
    now += 2500000
    calls.append(f"pop 1 {now}")
with open("gpu", "w") as file:
    print("stack launch py:train.py:10:step cudaLaunchKernel",
          "stack grow py:train.py:20:step py:pool.py:5:grow cudaMalloc",
          "stack small py:train.py:21:step cudaMalloc",
          "stack load py:train.py:30:step py:build.py:7:load", *calls, *work, sep="\n", file=file)
with open("cpu", "w") as file:
    print("meta log.kind cpu", "meta cpu.hz 100",
          "stack data py:train.py:40:main py:data.py:88:collate", *samples, sep="\n", file=file)
END
show() {
	merge run -q --summary out.json --iteration step-# --warmup 1
	python3 -c 'import json
data = json.load(open("out.json"))
for row in data["budget"]["rows"]:
    print(row["part"], row["total_ns"], row["line"], row["line_ns"], sep=" | ")
for row in data["steps"]["rows"]:
    if row.get("cause"):
        print("step", row["step"], row["cause"], row["cause_ns"], row["cause_line"], sep=" | ")'
}
make_log script run/host.4711.xtr <gpu
echo "-- without samples"
show
make_log script run/host.4711.cpu.xtr <cpu
echo "-- with samples"
show
merge run -q --folded - --weight gpu-idle | grep "step-[89].*\(allocating\|loading\)"
