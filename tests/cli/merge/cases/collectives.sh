# SPDX-License-Identifier: Apache-2.0
# Collectives are neither compute nor idle time: no rule about kernels reports them, and every
# output shows their time separately. The same log with another kernel name has the findings.
. "$tests/cases/findings.inc"
nccl=_Z34ncclDevKernel_AllReduce_Sum_f32_LL4Args
step() { # NAME-OF-KERNEL DURATION
	printf '%s; ' 'i or print("meta gpu.0.multiprocessors 132")' 'kernel(t, t + 5000, 20000)'
	printf '%s' "kernel(t + 4000, t + 25000, $2, name=\"$1@12\")"
}
echo "-- a rank that waits in AllReduce, and another that does not"
mkdir ranks other
make ranks/0.xtr "$(step $nccl 70000); i or print('meta gpu.0.uuid a')"
make ranks/1.xtr "$(step $nccl 10000); i or print('meta gpu.0.uuid b')"
show ranks --finding gpu-idle=off --finding short-kernels=off
merge ranks -q --all | sed -n '/^ *kernels/,/nothing else/p'
echo "-- the same with a kernel of another name"
make other/0.xtr "$(step reduce 70000); i or print('meta gpu.0.uuid a')"
make other/1.xtr "$(step reduce 10000); i or print('meta gpu.0.uuid b')"
show other --finding gpu-idle=off --finding short-kernels=off | grep '%  '
show other/0.xtr --finding gpu-idle=off --finding short-kernels=off | grep '%  '
merge other -q --all | grep -c collectives || :
echo "-- in the outputs: the first kernel overlaps 5 us of each collective that follows"
make overlap.xtr "i or print('stream 2 0 1 8'); kernel(t, t + 5000, 25000); kernel(t + 4000, t + 25000, 30000, stream=2, name=\"$nccl@12\")"
merge overlap.xtr -q --summary out.json --csv tables --sqlite out.db
python3 - <<'END'
import json, sqlite3
summary = json.load(open("out.json"))
device = summary["processes"][0]["devices"][0]
for key in ("kernel_count", "collective_count", "collective_time_ns", "collective_alone_ns",
            "gpu_time_ns", "gpu_busy_ns"):
    print(key, device[key], summary["totals"].get(key))
print([(row["kind"], row["gpu_time_ns"]) for row in summary["kernels"]["rows"]])
print(sqlite3.connect("out.db").execute("SELECT kernel_count, collective_count, gpu_time_ns, "
      "collective_time_ns FROM device_use").fetchall())
END
cut -d, -f1-3 tables/kernels.csv
echo "-- which names are collectives"
python3 - <<'END' >script
print("stack s main")
names = """ncclKernel_AllReduce_RING_LL_Sum_float ncclSymkDevKernel_AllReduce_AGxLL_R
_Z9my_kernel19ncclDevKernel_Thing _ZN4vllm26cross_device_reduce_1stageIfEEvv
_ZN12_GLOBAL__N_1L26multimem_all_gather_kernelEv void_my::kernel<ncclDevKernel_X>
_Z999999999999999999ncclDevKernel_ _Z my_ncclDevKernel_""".split()
for n, name in enumerate(names, 1):
    print("call", n, 1, "cuLaunchKernel", "s", n * 1000, 10)
    print("kernel", n, 1, name, n * 1000 + 100, 200 + n)
END
make_log script names.xtr <script
merge names.xtr -q --csv names
sort -t, -k3n names/kernels.csv
