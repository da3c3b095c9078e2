#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains one kind of small model on a GPU, for tests/gpu/forward_lines.py. Weights are random.

Prints the median time of a step and the number of steps. --truth writes the forward line of each
autograd node, as autograd's anomaly mode knows it, one JSON object per node:

    {"pid": 1, "tid": 1, "sequence": 7, "name": "MulBackward0", "frames": [[["a.py", 3], …], …]}

tid is null for nodes that a backward pass created. frames has one list per derivative, outermost
frame first: the forward line, then the frames in the backward function of that node, and so on.

--profile writes one more step as a trace of torch.profiler.
"""

import argparse
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time

THREADS = 8
RANKS = 2
PLACE = re.compile(r'  File "([^"]*)", line (\d+), in ')
FORMATTER = "torch/fx/traceback.py"  # its own frame is the innermost


class Truth:
    """Writes the nodes of the first steps. Does nothing without a file."""

    def __init__(self, path, step_count):
        self.file = open(path, "a") if path else None
        self.steps_left = step_count
        self.lock = threading.Lock()

    def begin(self, torch):
        if self.file:
            torch.autograd.set_detect_anomaly(True, check_nan=False)

    def note(self, *losses):
        """Call before the backward pass of these tensors, once in a step."""
        with self.lock:
            if not self.file or self.steps_left == 0:
                return
            self.steps_left -= 1
            seen, left = {}, [loss.grad_fn for loss in losses]
            while left:
                node = left.pop()
                if node is None or id(node) in seen:
                    continue
                seen[id(node)] = node  # keeps the object, so that its id is not reused
                left += [function for function, _ in node.next_functions]
                self.write(node)
            self.file.flush()

    def write(self, node):
        name = node.name()
        if name.endswith("AccumulateGrad"):  # it has no number
            return
        frames = levels_of(node)
        self.file.write(json.dumps({
            "pid": os.getpid(), "tid": None if len(frames) > 1 else threading.get_native_id(),
            "sequence": node._sequence_nr(), "name": name, "frames": frames}) + "\n")


def levels_of(node):
    """Frames of the node's creation, after those of the node whose backward function made it."""
    lines = "".join(node.metadata.get("traceback_", ()))
    frames = [[file, int(line)] for file, line in PLACE.findall(lines)]
    if frames and frames[-1][0].endswith(FORMATTER):
        frames.pop()
    parent = node.metadata.get("parent_")
    return ([] if parent is None else levels_of(parent)) + [frames]


def blocks(torch, dim=256, depth=6):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(2))
            self.qkv = nn.Linear(dim, 3 * dim)
            self.out = nn.Linear(dim, dim)
            self.up = nn.Linear(dim, 4 * dim)
            self.down = nn.Linear(4 * dim, dim)

        def attend(self, x):
            batch, length, _ = x.shape
            q, k, v = self.qkv(x).view(batch, length, 3, 4, dim // 4).permute(2, 0, 3, 1, 4)
            weights = torch.softmax(q @ k.transpose(-2, -1) / 8, dim=-1)
            return self.out((weights @ v).transpose(1, 2).reshape(batch, length, dim))

        def forward(self, x):
            x = x + self.attend(self.norms[0](x))
            return x + self.down(nn.functional.gelu(self.up(self.norms[1](x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Block() for _ in range(depth))
            self.head = nn.Linear(dim, 10)

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return self.head(x.mean(1))

    return Model()


def batch_of(torch, options, dim=256):
    return (torch.randn(8, 64, dim, device=options.device),
            torch.randint(0, 10, (8,), device=options.device))


def training(torch, options, model, parameters=None):
    """A usual step of a classifier."""
    optimizer = torch.optim.Adam(parameters or model.parameters(), lr=1e-4)
    x, label = batch_of(torch, options)

    def step():
        loss = torch.nn.functional.cross_entropy(model(x), label)
        options.truth.note(loss)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return step


def transformer(torch, options):
    return training(torch, options, blocks(torch).to(options.device))


def same_thread(torch, options):
    """The calling thread runs the backward pass."""
    step = transformer(torch, options)

    def in_this_thread():
        with torch.autograd.set_multithreading_enabled(False):
            step()
    return in_this_thread


def resnet(torch, options):
    """Mixed precision with a gradient scaler."""
    from torchvision.models import resnet18
    model = resnet18(num_classes=10).to(options.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler(options.device)
    x = torch.randn(16, 3, 96, 96, device=options.device)
    label = torch.randint(0, 10, (16,), device=options.device)

    def step():
        with torch.autocast(options.device, dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(x), label)
        loss = scaler.scale(loss)
        options.truth.note(loss)
        loss.backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    return step


def gpt2(torch, options):
    """A model of the package transformers."""
    from transformers import GPT2Config, GPT2LMHeadModel
    config = GPT2Config(vocab_size=1000, n_positions=128, n_embd=256, n_layer=4, n_head=4)
    model = GPT2LMHeadModel(config).to(options.device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    ids = torch.randint(0, 1000, (4, 128), device=options.device)

    def step():
        loss = model(input_ids=ids, labels=ids).loss
        options.truth.note(loss)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return step


def functions(torch, options):
    """Custom functions, and operators whose forward pass launches nothing."""
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, grad):
            x, = ctx.saved_tensors
            return 3 * grad * x * x

    class Identity(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            return grad * 0.5

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(100, 64)
            self.linear = torch.nn.Linear(64, 64)

        def forward(self, ids):
            x = self.linear(self.embedding(ids))
            tail = x[:, 1:]
            mask = x > 0
            x = torch.where(mask, x, x * 0.1)
            x = torch.cat((x[:, :1], tail), 1)
            x = Identity.apply(Cube.apply(x))
            scores = torch.einsum("bid,bjd->bij", x, x)
            x = x.clone()
            x[:, 0] = scores.unsqueeze(-1).expand(-1, -1, -1, 64).mean(2)[:, 1]
            return x.masked_fill(mask, 0).transpose(1, 2).flatten(1).sum()

    model = Model().to(options.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    ids = torch.randint(0, 100, (16, 32), device=options.device)

    def step():
        loss = model(ids)
        options.truth.note(loss)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return step


def checkpoint(torch, options):
    """Each second block is recomputed in one of the two ways."""
    from torch.utils.checkpoint import checkpoint
    model = blocks(torch).to(options.device)

    def forward(x):
        for i, block in enumerate(model.blocks):
            if i % 2:
                x = block(x)
            else:
                x = checkpoint(block, x.requires_grad_(), use_reentrant=i % 4 == 0)
        return model.head(x.mean(1))
    return training(torch, options, forward, list(model.parameters()))


def double(torch, options):
    """A gradient penalty, and a graph that runs twice."""
    model = blocks(torch, depth=2).to(options.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    x, label = batch_of(torch, options)
    x.requires_grad_()

    def step():
        loss = torch.nn.functional.cross_entropy(model(x), label)
        grad, = torch.autograd.grad(loss, x, create_graph=True)
        penalty = (grad * grad).sum()
        options.truth.note(loss, penalty)
        penalty.backward(retain_graph=True)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        x.grad = None
    return step


def threads(torch, options):
    """Each thread has its own model and stream."""
    barriers = [threading.Barrier(THREADS + 1) for _ in range(2)]
    failures = []

    def work():
        try:
            stream = torch.cuda.Stream() if options.device == "cuda" else None
            with torch.cuda.stream(stream):
                step = training(torch, options, blocks(torch, depth=2).to(options.device))
                while True:
                    barriers[0].wait()
                    step()
                    barriers[1].wait()
        except threading.BrokenBarrierError:
            pass
        except BaseException as failure:
            failures.append(failure)
            for barrier in barriers:
                barrier.abort()

    for _ in range(THREADS):
        threading.Thread(target=work, daemon=True).start()

    def step():
        for barrier in barriers:
            try:
                barrier.wait()
            except threading.BrokenBarrierError:
                raise failures[0] if failures else RuntimeError("a thread has ended")
    return step


def graph(torch, options):
    """A CUDA graph of a whole step."""
    model = blocks(torch, depth=2).to(options.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, capturable=True)
    x, label = batch_of(torch, options)

    def train():
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(model(x), label)
        loss.backward()
        optimizer.step()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            train()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        train()
    return captured.replay


def compiled(mode):
    def kind(torch, options):
        model = blocks(torch, depth=2).to(options.device)
        return training(torch, options, torch.compile(model, mode=mode), list(model.parameters()))
    kind.__doc__ = "torch.compile, mode %s" % mode
    return kind


def compiled_autograd(torch, options):
    """The backward pass is compiled as one graph."""
    import torch._dynamo
    torch._dynamo.config.compiled_autograd = True
    model = blocks(torch, depth=2).to(options.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    x, label = batch_of(torch, options)

    @torch.compile
    def train():
        loss = torch.nn.functional.cross_entropy(model(x), label)
        loss.backward()

    def step():
        train()
        optimizer.step()
        optimizer.zero_grad()
    return step


def ddp(torch, options):
    """One of two ranks on one GPU, with gloo."""
    import torch.distributed as dist
    dist.init_process_group("gloo", init_method="file://" + options.store, rank=options.rank,
                            world_size=RANKS)
    model = blocks(torch, depth=2).to(options.device)
    return training(torch, options, torch.nn.parallel.DistributedDataParallel(model))


def jax_kind(jax, options):
    """A jitted step and eager operators."""
    jnp = jax.numpy

    def model(weights, x):
        for weight in weights:
            x = jnp.tanh(x @ weight)
        return x

    def loss(weights, x, y):
        return jnp.mean((model(weights, x) - y) ** 2)

    @jax.jit
    def train(weights, x, y):
        grads = jax.grad(loss)(weights, x, y)
        return [weight - 0.01 * grad for weight, grad in zip(weights, grads)]

    key = jax.random.PRNGKey(0)
    weights = [jax.random.normal(key, (512, 512)) * 0.05 for _ in range(4)]
    x, y = jax.random.normal(key, (256, 512)), jnp.zeros((256, 512))

    def step():
        weights[:] = train(weights, x, y)
        norm = jnp.linalg.norm(weights[0])
        norm.block_until_ready()
    return step


def lightning(torch, options):
    """Lightning has its own loop. Returns times of steps."""
    import pytorch_lightning as pl
    from torch.utils.data import DataLoader, TensorDataset
    times = []

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = blocks(torch, depth=4)

        def training_step(self, batch, index):
            x, label = batch
            loss = torch.nn.functional.cross_entropy(self.model(x), label)
            options.truth.note(loss)
            return loss

        def on_train_start(self):
            options.truth.begin(torch)  # the trainer ends the mode

        def on_train_batch_end(self, outputs, batch, index):
            synchronize(torch, options)
            times.append(time.perf_counter())

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=1e-4)

    count = options.warm_up + options.steps + 1
    data = TensorDataset(torch.randn(8 * 64, 64, 256), torch.randint(0, 10, (8 * 64,)))
    trainer = pl.Trainer(max_steps=count, accelerator="gpu" if options.device == "cuda" else "cpu",
                         devices=1, logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Module(), DataLoader(data, batch_size=8, num_workers=2, persistent_workers=True))
    return [after - before for before, after in zip(times, times[1:])][options.warm_up:]


# By name: the function, the modules that it needs, and whether it can write the truth.
KINDS = {
    "transformer": (transformer, ("torch",), True),
    "resnet": (resnet, ("torch", "torchvision"), True),
    "gpt2": (gpt2, ("torch", "transformers"), True),
    "lightning": (lightning, ("torch", "pytorch_lightning"), True),
    "threads": (threads, ("torch",), True),
    "functions": (functions, ("torch",), True),
    "checkpoint": (checkpoint, ("torch",), True),
    "double": (double, ("torch",), True),
    "same_thread": (same_thread, ("torch",), True),
    "ddp": (ddp, ("torch",), True),
    "graph": (graph, ("torch",), False),
    "compiled_autograd": (compiled_autograd, ("torch",), False),
    "compile": (compiled("default"), ("torch",), False),
    "compile_reduce": (compiled("reduce-overhead"), ("torch",), False),
    "compile_max": (compiled("max-autotune"), ("torch",), False),
    "jax": (jax_kind, ("jax",), False),
}


def missing_of(kind):
    """The names of modules that the kind needs and that are not installed."""
    return [name for name in KINDS[kind][1] if importlib.util.find_spec(name) is None]


def synchronize(torch, options):
    if options.device == "cuda":
        torch.cuda.synchronize()


def profile(torch, step, path):
    """Records one step with torch.profiler."""
    with torch.profiler.profile(with_stack=True) as profiler:
        step()
        torch.cuda.synchronize()
    profiler.export_chrome_trace(path)


def run(options):
    """Returns the times of the steps."""
    function, modules, _ = KINDS[options.kind]
    library = importlib.import_module(modules[0])
    is_torch = modules[0] == "torch"
    if is_torch:
        library.manual_seed(0)
        options.truth.begin(library)
    if function is lightning:
        return lightning(library, options)
    step, times = function(library, options), []
    for i in range(options.warm_up + options.steps):
        begin = time.perf_counter()
        step()
        if is_torch:
            synchronize(library, options)
        if i >= options.warm_up:
            times.append(time.perf_counter() - begin)
    if options.profile:
        profile(library, step, options.profile)
    if function is ddp:
        library.distributed.destroy_process_group()
    return times


def run_ranks(arguments):
    """Runs this program once for each rank. Returns an exit status."""
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        ranks = [subprocess.Popen([sys.executable, os.path.abspath(__file__), *arguments,
                                   "--rank", str(rank), "--store", store])
                 for rank in range(RANKS)]
        return max(abs(rank.wait()) for rank in ranks)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--steps", type=int, default=50, help="timed steps (50)")
    parser.add_argument("--warm-up", type=int, default=5, help="steps before them (5)")
    parser.add_argument("--truth", metavar="FILE", help="append the forward line of each node")
    parser.add_argument("--truth-steps", type=int, default=8,
                        help="calls of backward() whose nodes are written (8)")
    parser.add_argument("--profile", metavar="FILE", help="for kinds of one thread and process")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--needs", action="store_true",
                        help="only print the missing modules and whether there is a truth")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.needs:
        print(json.dumps({"missing": missing_of(options.kind), "truth": KINDS[options.kind][2]}))
        return 0
    if options.kind == "ddp" and options.rank is None:
        return run_ranks(sys.argv[1:])
    options.truth = Truth(options.truth, options.truth_steps)
    times = run(options)
    if not options.rank:
        print("%s: %.4f ms/step, %d steps" % (options.kind, 1e3 * statistics.median(times),
                                             len(times)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
