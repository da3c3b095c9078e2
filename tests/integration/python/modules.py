# SPDX-License-Identifier: Apache-2.0
"""Launches inside modules of the stand-in for PyTorch. The ledger has the path of each module on the
stack, outermost first, as Python finds it by searching level by level.
"""

import collections
import gc
import os
import signal
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "standin"))

import gpu
from torch.nn.modules.module import Module, ModuleList, Sequential


def is_name(name):
    return isinstance(name, str) and len(name) < 256


def path_below(outer, wanted):
    """The shortest path; of equally short ones the first."""
    todo = collections.deque([("", outer)])
    while todo:
        path, module = todo.popleft()
        if any("_modules" in kind.__dict__ for kind in type(module).__mro__):
            continue  # not an attribute of the instance
        try:  # without creating the instance's dict
            children = object.__getattribute__(module, "_modules").items()
        except AttributeError:
            continue
        for name, child in children:
            if child is wanted and not is_name(name):
                return None
            name = "%s.%s" % (path, name) if path else name
            if child is wanted:
                return name
            if child is not None:
                todo.append((name, child))
    return None


def paths():
    frame, modules = sys._getframe(2), []
    while frame:
        if frame.f_code.co_name == "_wrapped_call_impl":
            modules.append(frame.f_locals["self"])
        frame = frame.f_back
    modules.reverse()
    shown, before = [], ""
    for outer, module in zip([None] + modules, modules):
        name = path_below(outer, module) if outer is not None else None
        if outer is None:
            shown.append(type(module).__name__)
            continue
        name = name or "<%s>" % type(module).__name__
        before = before + "." + name if before else name
        shown.append(before)
    return shown


def launch(by=gpu.released):
    gpu.launch(by, modules=paths())


class Linear(Module):
    def forward(self, x):
        launch()
        return x


class Attention(Module):
    def __init__(self):
        super().__init__()
        self.q_proj, self.k_proj, self.out = Linear(), Linear(), Linear()

    def forward(self, x):
        for project in (self.q_proj, self.k_proj):
            x = project(x)
        launch(gpu.held)
        return self.out(x)


class Layer(Module):
    def __init__(self):
        super().__init__()
        self.self_attn = Attention()
        self.mlp = Sequential([Linear(), Linear()])

    def forward(self, x):
        return self.mlp(self.self_attn(x))


class Model(Module):
    def __init__(self, layers=6, kind=Layer):
        super().__init__()
        self.embed = Linear()
        self.layers = ModuleList([kind() for _ in range(layers)])

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return x


def loops():
    model = Model()
    for _ in range(12):
        model(0)


def hooks():
    """The module of a hooked call is in a cell."""
    model = Model(3)
    seen = []
    for module in (model, model.layers[1], model.layers[1].self_attn.q_proj):
        module._forward_hooks["one"] = lambda *_: (seen.append(1), launch())
    for _ in range(6):
        model(0)
    assert seen


def shared():
    """One module with two names shows the first."""
    model = Model(4)
    model.layers[3].mlp = model.layers[0].mlp
    model.again = model.embed
    model.layers[2].self_attn.k_proj = model.layers[2].self_attn.q_proj
    for _ in range(6):
        model(0)


def replaced():
    """Modules that take the places and the memory of others."""
    model = Model(4)
    for turn in range(60):
        model(0)
        first, last = model.layers[turn % 4], model.layers[(turn + 1) % 4]
        model.layers._modules[str(turn % 4)] = last
        model.layers._modules[str((turn + 1) % 4)] = first
        model(0)
        if turn % 5 == 0:
            first = last = None
            model.layers._modules[str(turn % 4)] = Layer()
        if turn % 7 == 0:
            del model
            model = Model(4)
        if turn % 11 == 0:
            model.layers._modules["zero"] = model.layers._modules.pop("0")
            model(0)
            model.layers._modules["0"] = model.layers._modules.pop("zero")


def reused():
    """Models that are freed and made again at the same addresses, with other names."""
    seen, again = set(), 0
    for turn in range(1000):
        noise = [{} for _ in range(turn % 23)]  # where objects are depends on what else there is
        model, child = Sequential(), Linear()
        model._modules["n%d" % (turn % 7)] = child
        place = "%040x%040x" % (id(model), id(child))  # not of the size of a module
        again += place in seen
        seen.add(place)
        for _ in range(2):
            model(0)
        del model, child, noise
        gc.collect()
        if again > 30:
            return
    raise AssertionError(again)


def renamed():
    """Classes that are freed and made again with other names."""
    seen, again = set(), 0
    for turn in range(2000):
        model = type("Model%c" % (65 + turn % 7), (Linear,), {})()
        again += (id(model), id(type(model))) in seen
        seen.add((id(model), id(type(model))))
        for _ in range(2):
            model(0)
        del model
        gc.collect()
        if again > 30:
            return
    raise AssertionError(again)


def threads():
    models = [Model(2 + i) for i in range(4)]
    shared_model = Model(3)

    def work(model):
        gpu.in_thread()
        for _ in range(8):
            model(0)
            shared_model(0)

    workers = [threading.Thread(target=work, args=(model,)) for model in models]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def many():
    """Thousands of modules, more than one thread's cache keeps."""
    model = Model(int(os.environ.get("MODULES", "2000")), Linear)
    for _ in range(2):
        model(0)


def changing():
    """Threads that change a model while others launch in it: the names are any of those it had."""
    model, stop = Model(4), threading.Event()

    def change():
        while not stop.is_set():
            children = model.layers._modules
            model.layers.__dict__["_modules"] = {str(i): Layer() for i in range(4)}
            for i in range(40):  # the table grows, and moves
                model.layers._modules["more%d" % i] = Linear()
            for name in list(model.layers._modules)[4:]:
                del model.layers._modules[name]
            children.clear()

    def work():
        gpu.in_thread()
        for _ in range(int(os.environ.get("ROUNDS", "12"))):
            for layer in list(model.layers)[:4]:
                layer(0)
            model(0)

    changer = threading.Thread(target=change)
    workers = [threading.Thread(target=work) for _ in range(3)]
    for thread in (changer, *workers):
        thread.start()
    for worker in workers:
        worker.join()
    stop.set()
    changer.join()


class Bare(Module):
    """Never asked for its __dict__, so it may have none."""

    def __init__(self, *modules):
        super().__init__()
        for module in modules:
            self._modules["child%d" % len(self._modules)] = module

    def forward(self, x):
        launch()
        for module in self._modules.values():
            module(x)


def bare():
    model = Bare(Bare(), Bare(Bare(), Linear()))
    for _ in range(6):
        model(0)
    assert model.__dict__["_modules"]
    for _ in range(6):
        model(0)
    model.__dict__ = dict(model.__dict__)  # no keys of the class
    for _ in range(6):
        model(0)


class Temporary(Module):
    def forward(self, x):
        launch()
        return Linear()(x)


class Slots(Module):
    __slots__ = ("_modules", "extra")  # not in the instance's dict

    def forward(self, x):
        launch()
        return Linear()(x)


class Property(Module):
    """Its children are not in its dict."""

    @property
    def _modules(self):
        return {"hidden": self.__dict__["child"]}

    def __init__(self):
        self.__dict__.update(child=Linear(), _forward_hooks={})

    def forward(self, x):
        return self.__dict__["child"](x)


class Strange(dict):
    pass


def weird():
    """Modules that have no name where others have one."""
    model = Model(2)
    model.layers.append(Temporary())
    model.layers.append(Slots())
    model.layers.append(Property())
    model.none = None
    model._modules["nothing"] = None
    model._modules["Größe"] = Linear()
    model._modules["層"] = Linear()
    model._modules["\U0001f600"] = Linear()
    model.teacher = Sequential()
    model.teacher.__dict__["_modules"] = Strange(a=Linear(), b=Model(1))
    model.missing = Temporary()
    del model.missing.__dict__["_modules"]
    number = Temporary()
    number.__dict__["_modules"] = 7
    model.layers.append(number)
    model.layers._modules[5] = Linear()  # not a string
    model.layers._modules["x" * 300] = Linear()

    def forward(x):
        model.embed(x)
        for layer in model.layers:
            layer(x)
        for name in ("Größe", "層", "\U0001f600"):
            model._modules[name](x)
        model.teacher(x)
        model.missing(x)
        Model(1)(x)

    model.__dict__["forward"] = forward
    for _ in range(5):
        model(0)


def killed():
    model = Model(3)
    for _ in range(5):
        model(0)
    os.kill(os.getpid(), signal.SIGKILL)


def deep():
    """Recursion through modules."""
    model = inner = Sequential()
    for depth in range(60):
        inner.append(Sequential() if depth < 59 else Linear())
        inner = inner[0]
    for _ in range(3):
        model(0)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        globals()[name]()
    gpu.synchronize()
