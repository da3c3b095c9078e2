# SPDX-License-Identifier: Apache-2.0
# Which launches, copies and ranges are steps.
make() { # NAME BODY-OF-A-PYTHON-FUNCTION
	python3 - "$2" >script <<'END'
import sys
n, t = 0, 1000
def call(api, stack, took=3000):
    global n, t
    n += 1
    print("call", n, 1, api, stack, t, took)
    t += 10000
    return n
def launch(stack="launch"):
    print("kernel", call("cuLaunchKernel", stack), 1, "k", t, 5000)
def pause(ns):
    global t
    t += ns
for name, api in ("launch", "cudaLaunchKernel"), ("other", "cudaLaunchKernel"), ("load", "cudaMemcpyAsync"), ("wait", "cudaDeviceSynchronize"):
    print("stack", name, "main", name, api)
exec(sys.argv[1])
END
	make_log script "$1.xtr" <script
	merge -q "$1.xtr" | grep -e ^steps -e ^warm-up || echo "no steps"
}
echo "-- one launch in each iteration"
make single 'for i in range(40): launch()'
echo "-- a loop around equal launches, by the copy before them"
make batches 'for i in range(12):
    call("cuMemcpyHtoDAsync_v2", "load")
    for j in range(35): launch()'
echo "-- the same, by the wait after them"
make waits 'for i in range(12):
    for j in range(35): launch()
    call("cuCtxSynchronize", "wait")'
echo "-- a slow step in the first quarter is no warm-up, but slow steps at the beginning are"
make slow 'for i in range(100):
    launch(); launch("other"); pause(500000 if i == 20 else 0)'
make cold 'for i in range(100):
    launch(); launch("other"); pause(500000 if i < 4 or i == 6 else 0)'
echo "-- a requested range that ends less than 8 times"
make open 'for i in range(8):
    print("push 1", t, "- step")
    for j in range(12): launch()
    if i < 7: print("pop 1", t)'
merge -q open.xtr --iteration step | grep -e ^steps -e range || echo "no steps"
