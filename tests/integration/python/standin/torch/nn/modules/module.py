# SPDX-License-Identifier: Apache-2.0
"""The parts of PyTorch's Module that the tracer reads: where children are, and the two functions
that call a module. With a hook, `self` is in a cell.
"""

REGISTERS = ("training", "_parameters", "_buffers", "_backward_hooks", "_forward_hooks", "_modules")


class Module:
    _compiled_call_impl = None

    def __init__(self):
        for name in REGISTERS:
            super().__setattr__(name, True if name == "training" else {})

    def __setattr__(self, name, value):
        if isinstance(value, Module):
            self.__dict__["_modules"][name] = value
        else:
            super().__setattr__(name, value)

    def __getattr__(self, name):
        try:
            return self.__dict__["_modules"][name]
        except KeyError:
            raise AttributeError(name) from None

    def _wrapped_call_impl(self, *args, **kwargs):
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        return self._call_impl(*args, **kwargs)

    def _call_impl(self, *args, **kwargs):
        if not self._forward_hooks:
            return self.forward(*args, **kwargs)

        def inner():
            result = self.forward(*args, **kwargs)
            for hook in self._forward_hooks.values():
                hook(self, args, result)
            return result

        return inner()

    __call__ = _wrapped_call_impl


class ModuleList(Module):
    """Never called itself."""

    def __init__(self, modules=()):
        super().__init__()
        for module in modules:
            self.append(module)

    def append(self, module):
        self._modules[str(len(self._modules))] = module

    def __getitem__(self, index):
        return self._modules[str(index)]

    def __iter__(self):
        return iter(list(self._modules.values()))


class Sequential(ModuleList):
    def forward(self, x):
        for module in self:
            x = module(x)
        return x
