#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Python frames cost a call that was made before: cost.py BUILD_DIR/lib/libpython_cost.so

Run it with the interpreter that is to be measured. Each frame is of a function of its own, each three
of them of a file. Prints the ns of a call, entry and exit together, without and with them.
"""

import ctypes
import sys

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
