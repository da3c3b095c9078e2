# SPDX-License-Identifier: Apache-2.0
"""Compares call paths with the truth in the names of their kernels (library/truth.h).

Run as a program, it checks folded stacks from standard input.
"""

import collections
import re
import sys

USER_FILES = ("cases.py",)
PYTHON_FRAME = re.compile(r"^.* \((?:.*/)?([^/]+):(\d+)\)$")
LABELS = (("[backward] ", "b$"), ("[backward~] ", "v$"), ("[backward?] ", "u$"))
RECOMPUTE = "[recompute]"
GRAPH = "[graph]"
ENGINE = "torch::autograd::Engine::"

# A part of a path: tokens of places, then the token of a label. The last part has no label.
Part = collections.namedtuple("Part", "places label")


def token_of(frame):
    """The token of a frame, or None if it is none of the user's."""
    for label, token in LABELS:
        if frame.startswith(label):
            return token + re.sub("[<>]", "%", frame[len(label):])
    if frame == RECOMPUTE:
        return "r"
    found = PYTHON_FRAME.match(frame)
    if found:
        return found.group(2) if found.group(1) in USER_FILES else None
    return frame.split("(")[0] if frame.startswith("user_") else None


def is_label(token):
    return token == "r" or token[:2] in ("b$", "v$", "u$")


def parts_of(tokens):
    parts, places = [], []
    for token in tokens:
        if is_label(token):
            parts.append(Part(places, token))
            places = []
        else:
            places.append(token)
    return parts + [Part(places, None)]


def is_right_part(shown, true):
    """Only nodes whose forward function launched nothing may have an inferred or unknown place."""
    kind, kind_true = (shown.label or "")[:2], (true.label or "")[:2]
    if kind == "u$":
        return kind_true == "v$" and shown.label[2:] == true.label[2:]
    if (shown.label, true.label) == ("v$AccumulateGrad", "b$AccumulateGrad"):
        return shown.places == true.places  # several threads are inside backward()
    if shown.label != true.label:
        return False
    if kind == "v$":  # an inferred place is a caller of the true one, or the place itself
        return bool(shown.places) and shown.places == true.places[:len(shown.places)]
    return shown.places == true.places


def is_right(shown, truth):
    shown, truth = parts_of(shown), parts_of(truth)
    return len(shown) == len(truth) and all(map(is_right_part, shown, truth))


def made_node(frame, node):
    """Whether a frame is of the function that creates such a node."""
    if node == "AccumulateGrad":
        return frame.startswith("_engine_run_backward ") or frame == "user_backward"
    if node.startswith("CppNode<"):
        return "Function<%s>::apply" % node[len("CppNode<"):-1] in frame
    operator = re.match(r"at::_ops::(\w+)::call", frame)
    if not operator:
        return "apply (" in frame and "function.py:" in frame
    name = re.sub("Backwards?[0-9]*$", "", node).lower()
    words = operator.group(1).split("_")  # the last ones may name the overload
    return any(name == "".join(words[:i]) for i in range(1, len(words) + 1))


def is_of_engine(frames):
    """The call of backward() is known only in Python. In C++ the work belongs to the engine."""
    return frames[-1] == "[backward?] AccumulateGrad" and not any(map(PYTHON_FRAME.match, frames))


def faults_of(frames):
    """Yields the faults of a backward path, apart from its places."""
    labels = [i for i, frame in enumerate(frames) if is_label(token_of(frame) or "")]
    if not labels or is_of_engine(frames):
        return
    if any(frame.startswith(ENGINE) for frame in frames):
        yield "a frame of the engine"
    for i in labels:
        _, is_exact, node = frames[i].partition("[backward] ")
        if is_exact and i - 1 not in labels and not made_node(frames[i - 1], node):
            yield "%s is not below the function that creates it" % frames[i]
    inner = frames[labels[-1] + 1:]
    if frames[labels[-1]] != RECOMPUTE and inner and not PYTHON_FRAME.match(inner[0]):
        yield "native frames directly below %s" % frames[labels[-1]]


def check_line(line):
    """Returns the labels of a line of folded stacks, and what is wrong with it."""
    *frames, _, kernel = line.rsplit(" ", 1)[0].split(";")
    if GRAPH in frames:  # the path of the capture follows that of the replay
        frames = frames[frames.index(GRAPH) + 1:]
    true = [token for token in kernel.partition("$$")[2].split(".") if token]
    shown = [token for token in map(token_of, frames) if token]
    faults = list(faults_of(frames))
    if not is_right(shown, true) and not (is_of_engine(frames) and shown == ["u$AccumulateGrad"]):
        faults.append("shown %s, true %s" % (".".join(shown), ".".join(true)))
    return [token for token in shown if is_label(token)], faults


def check(lines):
    """Returns how many lines have each label, and the faults."""
    labels, faults = collections.Counter(), []
    for line in lines:
        found, wrong = check_line(line)
        labels.update(found)
        faults += ["%s\n    %s" % (fault, line) for fault in wrong]
    return labels, faults


def main():
    labels, faults = check(sys.stdin.read().splitlines())
    for label, count in sorted(labels.items()):
        print("%6d %s" % (count, label))
    print(*faults, sep="\n")
    sys.exit(1 if faults or not labels else 0)


if __name__ == "__main__":
    main()
