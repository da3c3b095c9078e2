# SPDX-License-Identifier: Apache-2.0
"""`python -m xtrace_gpu` is `xtrace`, and runs Python scripts with this Python."""
import os
import sys

from ._program import Error, find, why_not_started

if __name__ == "__main__":
    os.environ["XTRACE_INTERPRETER"] = sys.executable
    try:
        program = find()
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"xtrace: {why_not_started(error)}")
    except Error as error:
        sys.exit(f"xtrace: {error}")
