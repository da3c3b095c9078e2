#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what the tracer reads from nodes of the installed PyTorch with what PyTorch says.

usage: real_nodes.py LIBRARY

Exit status: 0 success, 1 a difference, 77 no PyTorch.
"""

import ctypes
import sys

try:
    import torch
except ImportError:
    sys.exit(77)

POINTER_BYTES = 8
OBJECT_HEAD_BYTES = 16  # of a PyObject; a node's object has a shared_ptr<Node> behind it
NO_SEQUENCE = 2 ** 64 - 1


def load(path):
    library = ctypes.CDLL(path)
    library.node_is_right.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    for name, result in (("node_sequence", ctypes.c_uint64), ("node_thread", ctypes.c_uint64),
                         ("node_name", ctypes.c_char_p)):
        getattr(library, name).argtypes = [ctypes.c_size_t]
        getattr(library, name).restype = result
    return library


def shared_of(node):
    """Addresses of the node and of its counts."""
    place = id(node) + OBJECT_HEAD_BYTES
    return [ctypes.c_size_t.from_address(place + i * POINTER_BYTES).value for i in range(2)]


def nodes_below(root):
    """All nodes, parents first."""
    found, left = [], [root]
    while left:
        node = left.pop(0)
        if node is not None and node not in found:
            found.append(node)
            left += [function for function, _ in node.next_functions]
    return found


def main():
    library = load(sys.argv[1])
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4), torch.nn.GELU())
    x = model(torch.randn(3, 4))
    nodes = nodes_below((x[1:] * 2).transpose(0, 1).softmax(0).sum().grad_fn)
    sequences, threads = {}, set()
    for node in nodes:
        address, control = shared_of(node)
        assert library.node_is_right(address, control), node
        class_name = type(node).__name__
        assert class_name in library.node_name(address).decode(), (
            class_name, library.node_name(address))
        sequence = library.node_sequence(address)
        assert (sequence == NO_SEQUENCE) == (class_name == "AccumulateGrad"), (node, sequence)
        if sequence == NO_SEQUENCE:
            continue
        if hasattr(node, "_sequence_nr"):
            assert sequence == node._sequence_nr(), (sequence, node._sequence_nr())
        sequences[node] = sequence
        threads.add(library.node_thread(address))
    for node, sequence in sequences.items():
        for inner, _ in node.next_functions:
            assert inner not in sequences or sequences[inner] < sequence, (node, inner)
    assert len(set(sequences.values())) == len(sequences) > 6, sequences
    assert len(threads) == 1 and 0 not in threads, threads
    address, control = shared_of(nodes[0])
    assert not library.node_is_right(address + POINTER_BYTES, control)
    assert not library.node_is_right(address, control + POINTER_BYTES)
    print("PyTorch %s: %d nodes as expected" % (torch.__version__, len(nodes)))


if __name__ == "__main__":
    main()
