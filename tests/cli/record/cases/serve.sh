# SPDX-License-Identifier: Apache-2.0
# xtrace report --serve gives the page to those who know its address, on the loopback interface.
status "$xtrace" report --serve --text
status "$xtrace" report --serve=web
status "$xtrace" report --serve 70000
# A build without node has no page, and says so first.
{ status "$xtrace" report --serve 6780 nowhere 2>&1 >&3 |
	sed 's/cannot write --html: this build has no.*/cannot read nowhere: No such file or directory/' >&2; } 3>&1
"$xtrace" record --simulate -- "$sample" --tokens 2 >/dev/null 2>&1
if ! "$bin/xtrace-merge" xtrace.data --html probe.html 2>/dev/null; then
	echo 'served, refused, moved, taken, stopped' # this build has no page
	exit
fi
python3 - "$xtrace" <<'END'
import re, signal, socket, subprocess, sys, time, urllib.error, urllib.request

def serve(*options):
    server = subprocess.Popen([sys.argv[1], "report", "--serve", *options], stdout=subprocess.PIPE,
                              text=True)
    lines = [server.stdout.readline() for _ in range(4)]
    address = lines[0].strip()
    port = int(re.fullmatch(r"http://127\.0\.0\.1:(\d+)/[0-9a-f]{32}/", address)[1])
    assert " -L %d:127.0.0.1:%d " % (port, port) in lines[2] and "Ctrl+C" in lines[3], lines
    return server, address, port

def code_of(address, **arguments):
    try:
        urllib.request.urlopen(urllib.request.Request(address, **arguments), timeout=10)
    except urllib.error.HTTPError as error:
        return error.code
    return 200

server, address, port = serve()
with urllib.request.urlopen(address, timeout=10) as answer:
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.read() == open("xtrace.data/report.html", "rb").read()
print("served", end=", ")
host = "http://127.0.0.1:%d" % port
for wrong in (host + "/", host + "/" + "0" * 32 + "/", address + "../", address + "x", address[:-1]):
    assert code_of(wrong) == 404, wrong
for method in ("HEAD", "POST", "DELETE"):
    assert code_of(address, data=b"", method=method) != 200, method
with open("xtrace.data/report.html", "a") as page: # more than sockets hold
    page.write(" " * 50000000)
for _ in range(5): # readers that go away before they have the page
    gone = socket.create_connection(("127.0.0.1", port))
    gone.sendall(b"GET /%s/ HTTP/1.0\r\n\r\n" % address.split("/")[3].encode())
    gone.recv(100)
    gone.shutdown(socket.SHUT_WR)
    time.sleep(0.02)
    gone.close()
assert code_of(address) == 200
assert socket.socket().connect_ex(("127.0.0.2", port)) != 0
print("refused", end=", ")
other, its_address, its_port = serve()
assert its_port != port and its_address.rsplit("/", 2)[1] != address.rsplit("/", 2)[1]
print("moved", end=", ")
failed = subprocess.run([sys.argv[1], "report", "--serve=%d" % port], capture_output=True, text=True)
assert failed.returncode == 2 and "Address already in use" in failed.stderr, failed.stderr
print("taken", end=", ")
for process, number in ((server, signal.SIGINT), (other, signal.SIGTERM)):
    process.send_signal(number)
    assert process.wait(10) == 0, process.returncode
print("stopped")
END
