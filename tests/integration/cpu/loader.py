# SPDX-License-Identifier: Apache-2.0
"""Waits for data as PyTorch's DataLoader does, with its names. usage: loader.py DIR SECONDS"""
import importlib.util
import os
import sys

FOLDER = os.path.join(sys.argv[1], "torch/utils/data")

LOADER = '''
import multiprocessing
from torch_worker import _worker_loop

def _try_get_data(queue):
    return queue.get()

def run(seconds):
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    workers = [context.Process(target=_worker_loop, args=(queue, seconds)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        _try_get_data(queue)
    for worker in workers:
        worker.join()
    print('{"workers": %s}' % [worker.pid for worker in workers])
'''
WORKER = '''
import time

def collate():
    return sum(range(1000))

def _worker_loop(queue, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        collate()
    queue.put(1)
'''


def load(name, path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


load("torch_worker", os.path.join(FOLDER, "_utils/worker.py"), WORKER)
load("torch_loader", os.path.join(FOLDER, "dataloader.py"), LOADER).run(float(sys.argv[2]))
