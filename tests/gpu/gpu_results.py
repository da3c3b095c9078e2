# SPDX-License-Identifier: Apache-2.0
"""How the tests for a real GPU report their results."""

import json
import sys

SKIPPED = 77


def finish(path, results, problems):
    """Prints the problems, writes everything to a file if there is a path, and exits."""
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"results": results, "problems": problems}, file, indent=1)
    for problem in problems:
        print("WRONG: " + problem)
    print("%d problems" % len(problems))
    sys.exit(1 if problems else 0)


def gpu_name():
    """Returns the name of the GPU that PyTorch uses, or exits if there is none."""
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed")
        sys.exit(SKIPPED)
    if not torch.cuda.is_available():
        print("PyTorch finds no GPU")
        sys.exit(SKIPPED)
    return torch.cuda.get_device_name(0)
