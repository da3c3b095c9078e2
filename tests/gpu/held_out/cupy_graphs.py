# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs that CuPy captures: replayed often, on several streams, and captured again."""

import cupy


def capture(stream, x, y, steps):
    with stream:
        stream.begin_capture()
        for _ in range(steps):
            cupy.multiply(x, 1.0001, out=y)
            cupy.add(y, 1, out=x)
        return stream.end_capture()


def main():
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:  # compile before the capture
        x, y = cupy.zeros(1 << 16, dtype=cupy.float32), cupy.zeros(1 << 16, dtype=cupy.float32)
        cupy.multiply(x, 1.0001, out=y)
        cupy.add(y, 1, out=x)
    stream.synchronize()
    graph = capture(stream, x, y, 25)
    for _ in range(200):
        graph.launch(stream)
    stream.synchronize()
    print("one graph", round(float(x[0]), 1), round(float(x.mean()), 1))
    others = [cupy.cuda.Stream(non_blocking=True) for _ in range(4)]
    arrays = [(cupy.zeros(1024, dtype=cupy.float32), cupy.zeros(1024, dtype=cupy.float32))
              for _ in others]
    cupy.cuda.Device().synchronize()
    graphs = [capture(each, *pair, 10) for each, pair in zip(others, arrays)]
    for _ in range(100):
        for each, own in zip(others, graphs):
            own.launch(each)
    cupy.cuda.Device().synchronize()
    print("four graphs", [round(float(pair[0].sum()), 0) for pair in arrays])
    sums = []
    for steps in range(1, 20):
        with stream:
            x.fill(0)
        graph = capture(stream, x, y, steps)
        graph.launch(stream)
        stream.synchronize()
        sums.append(round(float(x[0]), 2))
    print("new graphs", sums)


if __name__ == "__main__":
    main()
