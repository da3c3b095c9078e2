# SPDX-License-Identifier: Apache-2.0
"""Records parts of itself. Launches of an odd number are inside recording(), others are not."""
import threading

import xtrace_gpu

with xtrace_gpu.recording():
    import gpu  # starts CUDA

    gpu.launch()
gpu.launch()


@xtrace_gpu.recording
def step():
    gpu.launch()


step()
gpu.launch()
with xtrace_gpu.recording():
    with xtrace_gpu.recording():
        pass
    gpu.launch()
gpu.launch()

entered, go_on = threading.Event(), threading.Event()


def other_thread():
    with xtrace_gpu.recording():
        entered.set()
        go_on.wait()


thread = threading.Thread(target=other_thread)
with xtrace_gpu.recording():
    thread.start()
    entered.wait()
gpu.launch()  # in the other thread's recording()
go_on.set()
thread.join()
gpu.launch()
try:
    with xtrace_gpu.recording():
        gpu.launch()
        raise KeyError
except KeyError:
    pass
gpu.launch()
