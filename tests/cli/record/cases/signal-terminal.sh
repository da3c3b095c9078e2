# SPDX-License-Identifier: Apache-2.0
# Ctrl-C on a terminal reaches the program once, through its process group. xtrace does not end, so
# that it can report.
if ! python3 -c 'import os; os.openpty()' 2>/dev/null; then
	echo "there are no terminals here" >&2
	exit 77
fi
cat >program.py <<'END'
import signal, sys, time
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
print("ready", flush=True)
while not seen:
    time.sleep(0.01)
time.sleep(0.3)
print("interrupts:", len(seen))
sys.exit(7)
END
cat >terminal.py <<'END'
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
said = b""
sent = False
while True:
    try:
        said += os.read(terminal, 4096)
    except OSError:
        break
    if b"ready\r\n" in said and not sent:
        os.write(terminal, b"\x03")
        sent = True
print(said.decode().replace("\r", "").replace("^C", ""), end="")
print("status", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
python3 terminal.py "$xtrace" record python3 program.py
