#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Python frames cost a call that was made before: cost.py BUILD_DIR/lib/libpython_cost.so

Run it with the interpreter that is to be measured. Each frame is of a function of its own, each three
of them of a file. Prints the ns of a call, entry and exit together, without and with them; then the same where
the calls come from many paths of ten frames, in random order.
"""

import ctypes
import random
import sys
import time

CALLS = 1200000
FUNCTION = "def function_%d(rest):\n    return rest[0](rest[1:]) if rest else cost(CALLS)\n"

library = ctypes.CDLL(sys.argv[1])
library.cost_ns.restype = ctypes.c_double
step = library.cost_begin()
if step:
    sys.exit("step %d of the preparation failed" % step)
functions = []
for number in range(30):
    names = {"cost": library.cost_ns, "CALLS": CALLS}
    exec(compile("\n" * number + FUNCTION % number,
                 "/usr/lib/python3/dist-packages/package/module_%d.py" % (number // 3), "exec"),
         names)
    functions.append(names["function_%d" % number])
for depth in (8, 30):
    times = []
    for with_python in (0, 1):
        library.cost_take_python(with_python)
        times.append(min(functions[0](functions[1:depth]) for _ in range(2)))
    print("Python %s, %d frames: %.0f ns a call without, %.0f with them: %+.0f" % (
        sys.version.split()[0], depth, *times, times[1] - times[0]))


def deeply(rest, function):
    return deeply(rest - 1, function) if rest else function()


def paths_ns(paths, calls, with_python):
    library.cost_take_python(with_python)
    for functions in (paths, calls[:2000], calls):
        start = time.perf_counter_ns()
        for function in functions:
            deeply(8, function)
    return (time.perf_counter_ns() - start) / len(calls)


for count in (50, 500, 2000, 20000):
    names = {"call": ctypes.PyDLL(sys.argv[1]).cost_call}
    exec(compile("\n".join("def path_%d():\n    call()" % i for i in range(count)), "paths.py",
                 "exec"), names)
    paths = [names["path_%d" % i] for i in range(count)]
    calls = random.Random(1).choices(paths, k=60000)
    times = [min(paths_ns(paths, calls, with_python) for _ in range(3)) for with_python in (0, 1)]
    print("Python %s, %d paths: %+.0f ns a call" % (
        sys.version.split()[0], count, times[1] - times[0]))
