# SPDX-License-Identifier: Apache-2.0
# A reader that closes the pipe, such as head, causes no message.
make_log script work.xtr <<-END
	stack step main step cudaLaunchKernel
	call 1 1 cuLaunchKernel step 100 10
	kernel 1 1 matmul 200 50
END
/usr/bin/python3 - "$merge_program" <<'END'
import os
import subprocess
import sys

for output in ("--folded", "--text", "--summary"):
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run([sys.argv[1], output, "-", "work.xtr"], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    print(output, run.returncode, run.stderr.decode())
END
