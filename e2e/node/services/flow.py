"""flow.py ADDRESS: one flow of UDP, whose endpoint is deleted, goes on to another."""

import socket, subprocess, sys, time

s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
s.connect((sys.argv[1], 8060))


def ask():
    try:
        s.send(b"?")
        return s.recv(1500).decode().split()[0]
    except OSError:
        return None


first = ask()
print("one flow stays:", {ask() for _ in range(20)} == {first})
subprocess.run(["kubectl", "-n", "services", "delete", "pod", first, "--wait=false"], stdout=subprocess.DEVNULL)
end = time.time() + 10
while (now := ask()) in (None, first) and time.time() < end:
    time.sleep(0.1)
print("then another answers:", now not in (None, first))
