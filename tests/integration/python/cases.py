# SPDX-License-Identifier: Apache-2.0
"""Launches from every kind of Python code that can make a call. For CPython 3.9 and later."""

import asyncio
import contextlib
import ctypes
import functools
import gc
import os
import sys
import threading

import gpu

bridge = ctypes.CDLL(os.environ["BRIDGE"])
bridge_held = ctypes.PyDLL(os.environ["BRIDGE"])
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)


def recursion(depth=40):
    if depth:
        return recursion(depth - 1)
    gpu.launch()
    return gpu.launch(gpu.held)


class Model:
    class Block:
        def forward(self, x):
            gpu.launch()
            return x + 1

    def __init__(self):
        self.block = self.Block()

    def __call__(self, x):
        return self.block.forward(x) + self.step

    @property
    def step(self):
        gpu.launch()
        return 1

    @staticmethod
    def still():
        gpu.launch()

    @classmethod
    def of_class(cls):
        gpu.launch()

    def __lt__(self, other):
        gpu.launch()
        return False

    def __getattr__(self, name):
        gpu.launch()
        raise AttributeError(name)

    def __enter__(self):
        gpu.launch()
        return self

    def __exit__(self, *failure):
        gpu.launch()


def methods():
    model = Model()
    model(1)
    model.still()
    model.of_class()
    sorted([model, Model(), Model()])
    hasattr(model, "nothing")
    with model:
        gpu.launch()
    with contextlib.suppress(ValueError):
        gpu.launch()
        raise ValueError


def decorated(function):
    @functools.wraps(function)
    def wrapper(*arguments, **named):
        gpu.launch()
        return function(*arguments, **named)
    return wrapper


@decorated
@functools.lru_cache(None)
def decorators(number=1):
    gpu.launch()
    return number


def comprehensions():
    [gpu.launch() for _ in range(2)]
    {gpu.launch(): gpu.launch() for _ in range(2)}
    {gpu.launch() for _ in range(2) if [gpu.launch() for _ in range(1)]}
    list(gpu.launch() for _ in range(2))
    (lambda: gpu.launch())()
    return [
        gpu.launch()
        for _ in
        range(gpu.launch() * 0 + 2)
    ]


def generator(count):
    for _ in range(count):
        gpu.launch()
        received = yield gpu.launch()
        if received:
            gpu.launch()


def delegating(count):
    gpu.launch()
    yield from generator(count)
    gpu.launch()


def generators():
    for _ in delegating(2):
        gpu.launch()
    one = generator(5)
    next(one)
    one.send(1)
    with contextlib.suppress(RuntimeError):
        one.throw(RuntimeError)
    sum(generator(3))
    list(map(lambda x: gpu.launch() + x, generator(2)))
    first, *rest = delegating(2)

    def closing():
        try:
            yield 1
        finally:
            gpu.launch()
    unfinished = closing()
    next(unfinished)
    unfinished.close()


async def sleeper(number):
    gpu.launch()
    await asyncio.sleep(0)
    gpu.launch()
    return number


async def async_generator():
    for i in range(2):
        gpu.launch()
        yield await sleeper(i)


class AsyncManager:
    async def __aenter__(self):
        gpu.launch()
        await asyncio.sleep(0)

    async def __aexit__(self, *failure):
        gpu.launch()


async def coroutine():
    gpu.launch()
    await asyncio.gather(*(sleeper(i) for i in range(4)))
    async for _ in async_generator():
        gpu.launch()
    async with AsyncManager():
        gpu.launch()
    return [await sleeper(i) async for i in async_generator()]


def asynchronous():
    asyncio.run(coroutine())


def exceptions():
    try:
        try:
            {}["no"]
        except KeyError:
            gpu.launch()
            raise ValueError
        finally:
            gpu.launch()
    except ValueError as error:
        gpu.launch()
        error.__traceback__ = None
    else:
        gpu.launch()


def called_back(argument):
    gpu.launch(bridged=True)
    if argument:
        bridge.bridge_call(CALLBACK(called_back), argument - 1)
    return 0


def callbacks():
    bridge.bridge_call(CALLBACK(called_back), 2)
    bridge_held.bridge_call(CALLBACK(called_back), 1)

    def compare(a, b):
        gpu.launch()
        return a[0] - b[0]
    numbers = (ctypes.c_int * 4)(4, 1, 3, 2)
    order = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int),
                             ctypes.POINTER(ctypes.c_int))
    ctypes.CDLL(None).qsort(numbers, ctypes.c_size_t(4), ctypes.c_size_t(4), order(compare))


def foreign_threads():
    def in_foreign(argument):
        gpu.in_thread()
        return called_back(argument)
    bridge.bridge_thread(CALLBACK(in_foreign), 1)


class Mortal:
    def __del__(self):
        gpu.launch()


def c_entries():
    list(map(lambda x: gpu.launch() + x, range(2)))
    sorted(range(3), key=lambda x: gpu.launch())
    max([3, 1], key=lambda x: gpu.launch())
    list(filter(lambda x: gpu.launch(), range(2)))
    functools.partial(gpu.launch, gpu.held)()
    functools.reduce(lambda a, b: gpu.launch(), range(3))
    mortal = Mortal()
    del mortal
    cycle = Mortal()
    cycle.itself = cycle
    del cycle
    gc.collect()
    eval("gpu.launch()")
    exec("def made():\n    gpu.launch()\n\n\nmade()", {"gpu": gpu})
    import_hook = type("Hook", (), {"find_spec": staticmethod(
        lambda *arguments: gpu.launch() and None)})
    sys.meta_path.insert(0, import_hook)
    with contextlib.suppress(ImportError):
        import no_such_module_at_all  # noqa: F401
    sys.meta_path.remove(import_hook)
    str(type("Shown", (), {"__str__": lambda self: str(gpu.launch())})())


class Meta(type):
    def __new__(mcs, name, bases, members):
        gpu.launch()
        return super().__new__(mcs, name, bases, members)


def classes():
    class Body(metaclass=Meta):
        number = gpu.launch()

        def __init_subclass__(cls):
            gpu.launch()

    class Derived(Body):
        pass


class Inner:
    def __init__(self):
        gpu.launch()


class Outer(Inner):
    def __init__(self, number):
        super().__init__()
        self.inner = Inner()
        gpu.launch()


def constructing():
    """Often enough for the interpreter to specialise it."""
    for number in range(30):
        Outer(number)
        [Inner() for _ in range(2)]


def many_paths():
    """More lines on one native stack than the cache compares one by one, in two orders."""
    functions = []
    for number in range(120):
        names = {"gpu": gpu}
        exec(compile("\n" * number + "def f():\n    gpu.launch()", "many.py", "exec"), names)
        functions.append(names["f"])

    def through(function, depth=6):
        return through(function, depth - 1) if depth else function()
    for function in functions + functions[::7] + functions[::-1]:
        through(function)


def tracing():
    def trace(frame, event, argument):
        if frame.f_code.co_name == "traced" and event == "line":
            gpu.launch()
        return trace

    def traced():
        number = 1
        return number
    sys.settrace(trace)
    try:
        traced()
        gpu.launch()
    finally:
        sys.settrace(None)


def worker(depth):
    gpu.in_thread()
    for _ in range(20):
        recursion(depth)
        list(delegating(1))


def threads():
    several = [threading.Thread(target=worker, args=(depth,)) for depth in range(4)]
    for thread in several:
        thread.start()
    for thread in several:
        thread.join()


def remade_code():
    """Code is freed and other code is created at its address, repeatedly."""
    for i in range(60):
        text = "\n" * (i % 7) + "def remade%d():\n    gpu.launch()\n\n\nremade%d()" % (i % 5, i % 5)
        exec(compile(text, "made%d.py" % (i % 3), "exec"), {"gpu": gpu})


def other_names():
    exec(compile("def größe():\n gpu.launch()\ngröße()", "/tmp/ñandú.py", "exec"), {"gpu": gpu})
    exec(compile("def 名():\n gpu.launch()\n名()", "/tmp/目录/模型.py", "exec"), {"gpu": gpu})
    exec(compile("def f():\n gpu.launch()\nf()", "/tmp/\U0001f40d.py", "exec"), {"gpu": gpu})
    exec(compile("\n" * 70000 + "def f():\n gpu.launch()\nf()", "long.py", "exec"), {"gpu": gpu})
    exec(compile("if 1:\n" + "\n" * 300 + " x = [\n" + "\n" * 200 + " gpu.launch(), gpu.launch(\n)]",
                 "wide.py", "exec"), {"gpu": gpu})


class Text(str):
    """A str subclass, as template engines and numpy have."""


def derived_names():
    for file in (Text("derived.py"), Text("größer.py")):
        space = {"gpu": gpu}
        exec(compile("def f():\n gpu.launch()\n", file, "exec"), space)
        for _ in range(3):
            space["f"]()


CASES = (recursion, methods, decorators, comprehensions, generators, asynchronous, exceptions,
         callbacks, foreign_threads, c_entries, classes, constructing, many_paths, tracing,
         threads, remade_code, other_names, derived_names)

if __name__ == "__main__":
    wanted = sys.argv[1:]
    for case in CASES:
        if not wanted or case.__name__ in wanted:
            for repetition in range(3):
                case()
    gpu.synchronize()
