"""Sends to two processes under lab/wire-fault.c, which breaks the link to the first: link.py FOLDER; prints one line."""

import json
import os
import socket
import sys
import threading
import time

folder = sys.argv[1]
trigger = os.environ["WIRE_FAULT_TRIGGER"]


def other(name):
    """A connection to a process of its own, which writes down how much it got when the connection ends."""
    server = socket.create_server(("127.0.0.1", 0))
    pid = os.fork()
    if pid == 0:
        connection, _ = server.accept()
        server.close()
        got = 0
        while True:
            part = connection.recv(1 << 20)
            if not part:
                break
            got += len(part)
        with open(f"{folder}/got.{name}", "w") as file:
            file.write(str(got))
        os._exit(0)
    with open(f"{folder}/pid.{name}", "w") as file:
        file.write(str(pid))
    connection = socket.create_connection(server.getsockname())
    server.close()
    return connection


def attempt(call):
    try:
        return call()
    except BlockingIOError:
        return "again"


def switch(on):
    if on:
        open(trigger, "w").close()
    else:
        os.remove(trigger)
    time.sleep(0.05)  # it looks every 5 ms


broken, well = other("broken"), other("well")
time.sleep(0.2)  # both have accepted
broken.setblocking(False)
told = {}
ways = {
    "send": lambda c: c.send(b"abcd"),
    "sendmsg": lambda c: c.sendmsg([b"ab", b"cd"]),
    "write": lambda c: os.write(c.fileno(), b"abcd"),
    "writev": lambda c: os.writev(c.fileno(), [b"ab", b"cd"]),
}
told["before"] = [attempt(lambda: way(broken)) for way in ways.values()]
switch(True)
told["dead"] = [attempt(lambda: way(broken)) for way in ways.values() for _ in range(3)]
told["other"] = [attempt(lambda: way(well)) for way in ways.values()]

# A blocking sender is held until the link is well again.
broken.setblocking(True)
held = threading.Thread(target=lambda: told.update(blocking=broken.send(b"abcd")))
held.start()
held.join(0.3)
told["held"] = held.is_alive()
switch(False)
held.join(10)
told["after"] = [attempt(lambda: way(broken)) for way in ways.values()]

# Two megabytes at ten a second, in parts that its bucket allows.
os.environ["WIRE_FAULT_HOW"] = "slow=10"
switch(True)
began = time.monotonic()
broken.sendall(bytes(2_000_000))
told["slowSeconds"] = time.monotonic() - began
parts = [bytes(1_000)] * 1000
broken.setblocking(False)
first = attempt(lambda: broken.sendmsg(parts))
told["cut"] = first == "again" or 0 < first < 1_000_000
switch(False)
for connection in (broken, well):
    connection.close()
os.wait(), os.wait()
sent = 4 * 4 + 4 + 4 * 4 + 2_000_000 + (0 if first == "again" else first)
told["got"] = [int(open(f"{folder}/got.{name}").read()) for name in ("broken", "well")]
told["sent"] = [sent, 4 * 4]
print(json.dumps(told))
