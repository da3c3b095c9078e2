#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the scripts that tests/gpu/operators.py generates import: one case per operator.

A case has phases: it makes the sample inputs, calls the operator, makes the gradients of its
results, runs backward, and reads the results. The GPU is idle between phases. A copy on the GPU
begins each phase, of a size that no operator uses. So the order of the work on the GPU tells the
phase of each kernel, without the tracer's call paths.

As a program, prints the operators that can run, as JSON.
"""

import argparse
import hashlib
import importlib.util
import itertools
import json
import re
import signal
import sys
import types
import unittest
import warnings

import torch

PHASES = ("setup", "forward", "seeds", "backward", "finish")
# The sizes of the marks are odd, which those of numbers in memory are not.
MARK_BYTES, MARKS_PER_CASE, MARKS_PER_PHASE = (1 << 20) + 1, 16, 2
SAMPLES_TRIED = 8
CASE_S = 20
UNFILLED = re.compile("empty|resize")  # these return memory as it is
DIGEST_BYTES = 1 << 22

device = "cuda"
ledger = None
profiler = None
profile_path = None
marks = None
operators = None


class Stopped(Exception):
    """The case has no such sample, or lasts too long."""


def provide_expecttest():
    """PyTorch's test utilities import this package, which few installations have."""
    if not importlib.util.find_spec("expecttest"):
        module = types.ModuleType("expecttest")
        module.ACCEPT, module.TestCase = False, unittest.TestCase
        sys.modules["expecttest"] = module


def operator_list():
    provide_expecttest()
    sys.argv = sys.argv[:1]  # the utilities read it, too
    from torch.testing._internal.common_methods_invocations import op_db
    return op_db


def begin(arguments):
    """Called by the generated script, before the first case."""
    global device, ledger, profiler, profile_path, marks, operators
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default=device)
    parser.add_argument("--ledger", required=True)
    parser.add_argument("--profile")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    device, profile_path = options.device, options.profile
    ledger = open(options.ledger, "w", encoding="utf-8")
    operators = operator_list()

    def stop(*_):
        raise Stopped("timeout")
    signal.signal(signal.SIGALRM, stop)
    if device == "cuda":
        largest = MARK_BYTES + MARKS_PER_CASE * (len(operators) + 1) * SAMPLES_TRIED
        marks = [torch.zeros(largest, dtype=torch.uint8, device=device) for _ in range(2)]
    if profile_path:
        kind = torch.profiler.ProfilerActivity
        profiler = torch.profiler.profile(
            activities=[kind.CUDA if device == "cuda" else kind.CPU])
        profiler.start()


def end():
    if profiler:
        profiler.stop()
        profiler.export_chrome_trace(profile_path)
    ledger.close()


def mark(number, phase):
    """Begins a phase on the GPU."""
    if marks:
        torch.cuda.synchronize()
        size = MARK_BYTES + MARKS_PER_CASE * number + MARKS_PER_PHASE * PHASES.index(phase)
        marks[0][:size].copy_(marks[1][:size])
        torch.cuda.synchronize()


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)


def digest_of(value, is_filled=True):
    """A short text that differs if a value differs."""
    if isinstance(value, torch.Tensor):
        if not is_filled:
            return "%s %s" % (tuple(value.shape), value.dtype)
        head = "%s %s " % (tuple(value.shape), value.dtype)
        try:
            data = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
            if data.dtype == torch.bfloat16:
                data = data.view(torch.int16)
            return head + hashlib.sha1(data.numpy().tobytes()[:DIGEST_BYTES]).hexdigest()[:16]
        except (RuntimeError, TypeError, NotImplementedError):
            return head + str(value.layout)
    if isinstance(value, (tuple, list)):
        return "[%s]" % ", ".join(digest_of(item, is_filled) for item in value)
    return str(type(value).__name__) if callable(value) else repr(value)[:200]


class Case:
    """One call of one operator. Its methods never raise, except op()."""

    def __init__(self, number, index, name, sample_number):
        self.number, self.name, self.sample_number = number, name, sample_number
        self.info = operators[index]
        self.result = self.seeds = self.gradients = None
        self.row = {"number": number, "name": name, "sample": sample_number}

    def __enter__(self):
        mark(self.number, "setup")
        torch.manual_seed(self.number)
        signal.alarm(CASE_S)
        try:
            self.sample = self.choose_sample()
        except Exception as error:  # noqa: any operator may raise anything
            self.row["status"] = "sample: " + type(error).__name__
            self.sample = None
        else:
            if self.sample is None:
                self.row["status"] = "no such sample"
        mark(self.number, "forward")
        return self

    def choose_sample(self):
        """The sample with this number among the first ones that are not empty."""
        samples = self.info.sample_inputs(device, torch.float32,
                                          requires_grad=self.info.supports_autograd)
        samples = list(itertools.islice(samples, SAMPLES_TRIED))
        filled = [sample for sample in samples
                  if all(tensor.numel() for tensor in tensors_in([sample.input, sample.args]))]
        chosen = (filled or samples)[self.sample_number:self.sample_number + 1]
        return chosen[0] if chosen else None

    @property
    def arguments(self):
        if self.sample is None:
            raise Stopped(self.row["status"])
        return (self.sample.input, *self.sample.args)

    @property
    def named(self):
        return self.sample.kwargs

    @property
    def op(self):
        return self.info.op

    def settle(self, result):
        """Removes the freedom of some results, such as the sign of eigenvectors."""
        process = getattr(self.sample, "output_process_fn_grad", None)
        return process(result) if process else result

    def make_seeds(self):
        mark(self.number, "seeds")
        self.outputs = [tensor for tensor in tensors_in(self.result) if tensor.requires_grad]
        self.seeds = [torch.ones_like(tensor) for tensor in self.outputs]

    def backward(self):
        mark(self.number, "backward")
        inputs = [tensor for tensor in tensors_in([self.arguments, self.named])
                  if tensor.requires_grad]
        if inputs and self.outputs:
            self.gradients = torch.autograd.grad(self.outputs, inputs, self.seeds,
                                                 allow_unused=True)

    def finish(self):
        mark(self.number, "finish")
        signal.alarm(0)
        self.row.update(status="ok", backward=digest_of(self.gradients),
                        forward=digest_of(self.result, not UNFILLED.search(self.name)))

    def __exit__(self, kind, error, traceback):
        signal.alarm(0)
        if kind is KeyboardInterrupt:
            return False
        if error is not None and "status" not in self.row:
            self.row["status"] = "%s: %s" % (kind.__name__, str(error).split("\n")[0][:120])
        ledger.write(json.dumps(self.row) + "\n")
        ledger.flush()
        self.result = self.seeds = self.gradients = self.sample = None
        return True


def case(number, index, name, sample_number):
    return Case(number, index, name, sample_number)


def main():
    kind = sys.argv[1] if len(sys.argv) > 1 else device
    rows = []
    for index, info in enumerate(operator_list()):
        if torch.float32 in info.supported_dtypes(kind):
            name = info.name + ("." + info.variant_test_name if info.variant_test_name else "")
            rows.append({"index": index, "name": name, "autograd": bool(info.supports_autograd)})
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
