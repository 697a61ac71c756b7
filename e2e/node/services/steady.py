"""steady.py ADDRESS SECONDS: asks over and over, new connections and one that goes on; says how many were not answered."""

import socket, sys, time

address, seconds = sys.argv[1], float(sys.argv[2])


def connect():
    s = socket.create_connection((address, 8060), timeout=2)
    s.settimeout(2)
    return s


# A question that is asked line by line, the last of it at the end.
kept = connect()
kept.sendall(b"GET /client HTTP/1.1\r\n")
asked = failed = 0
kept_on = True
end = time.time() + seconds
while time.time() < end:
    asked += 1
    try:
        with connect() as s:
            s.sendall(b"GET /client HTTP/1.1\r\nHost: it\r\nConnection: close\r\n\r\n")
            if b"web-" not in s.recv(4096):
                failed += 1
    except OSError as error:
        failed += 1
        print(error)
    if asked == 20:
        print("steady", flush=True)
    if asked % 20 == 0:
        try:
            kept.sendall(b"X-Still: here\r\n")
        except OSError:
            kept_on = False
    time.sleep(0.01)
try:
    kept.sendall(b"\r\n")
    kept_on = kept_on and b"web-" in kept.recv(4096)
except OSError:
    kept_on = False
print(f"asked more than {asked // 100}00 times, {failed} not answered; the one that was kept: {kept_on}")
