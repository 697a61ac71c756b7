"""websocket.py serve PORT [PEM]: a server that greets, gives texts back in capitals and ends at `bye`; over TLS with PEM.
websocket.py ask URL [PROTOCOLS]: what it says to a client, with the keys of e2e/call; by a token where PROTOCOLS hold one."""

import base64, hashlib, os, socket, ssl, struct, sys, threading
from urllib.parse import urlsplit

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


def head(file):
    first, headers = file.readline().decode().strip(), {}
    while line := file.readline().decode().strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return first, headers


def accept(key):
    return base64.b64encode(hashlib.sha1(key.encode() + GUID).digest()).decode()


def frame(kind, data, masked):
    size = len(data)
    bits = 0x80 if masked else 0
    short = struct.pack("!BB", 0x80 | kind, bits | min(size, 126)) if size < 126 else (
        struct.pack("!BBH", 0x80 | kind, bits | 126, size) if size < 65536 else struct.pack("!BBQ", 0x80 | kind, bits | 127, size))
    if not masked:
        return short + data
    mask = os.urandom(4)
    return short + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data))


def read(file):
    kind, size = file.read(2)
    masked, size = size & 0x80, size & 0x7F
    if size > 125:
        size = struct.unpack("!H", file.read(2))[0] if size == 126 else struct.unpack("!Q", file.read(8))[0]
    mask = file.read(4) if masked else bytes(4)
    return kind & 15, bytes(b ^ mask[i % 4] for i, b in enumerate(file.read(size)))


def serve(connection, tls):
    connection = tls.wrap_socket(connection, server_side=True) if tls else connection
    file = connection.makefile("rwb")
    say = lambda kind, data: (file.write(frame(kind, data, False)), file.flush())
    first, headers = head(file)
    if headers.get("upgrade", "").lower() != "websocket" or "/no" in first:
        file.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 8\r\nConnection: close\r\n\r\nnot here")
        return file.close()
    protocol = headers.get("sec-websocket-protocol", "")
    chosen = f"Sec-WebSocket-Protocol: {protocol}\r\n" if protocol else ""
    file.write(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{chosen}"
               f"Sec-WebSocket-Accept: {accept(headers['sec-websocket-key'])}\r\n\r\n".encode())
    say(TEXT, f"hello to {first} {protocol or '-'} {'authorization' in headers}".encode())
    while True:
        kind, data = read(file)
        if kind == CLOSE:
            return connection.close()
        if data == b"bye":
            say(CLOSE, struct.pack("!H", 4001) + b"as you wish")
        elif kind == PING:
            say(PONG, data)
        else:
            say(TEXT, data.upper())


def connect(url):
    url, keys = urlsplit(url), os.environ["CORTEN_E2E_DIR"] + "/keys"
    connection = socket.create_connection((url.hostname, url.port), timeout=10)
    if url.scheme == "https":
        context = ssl.create_default_context(cafile=f"{keys}/ca")
        if not PROTOCOLS:
            context.load_cert_chain(f"{keys}/crt", f"{keys}/key")
        connection = context.wrap_socket(connection, server_hostname=url.hostname)
    return url, connection


def ask(url):
    url, connection = connect(url)
    file, key = connection.makefile("rwb"), base64.b64encode(os.urandom(16)).decode()
    protocols = f"Sec-WebSocket-Protocol: {PROTOCOLS}\r\n" if PROTOCOLS else ""
    file.write(f"GET {url.path}?{url.query} HTTP/1.1\r\nHost: {url.netloc}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{protocols}"
               f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode())
    file.flush()
    first, headers = head(file)
    if "101" not in first:
        return print(first, file.read(int(headers.get("content-length", 0))).decode())
    print(first, headers["sec-websocket-accept"] == accept(key), headers.get("sec-websocket-protocol", "-"))
    print(read(file)[1].decode())
    say = lambda kind, data: (file.write(frame(kind, data, True)), file.flush(), read(file))[2]
    big = b"a longer text " * 20000
    print(say(TEXT, b"abc"), say(PING, b"?"), say(TEXT, big) == (TEXT, big.upper()))
    kind, data = say(TEXT, b"bye")
    print(kind == CLOSE, struct.unpack("!H", data[:2])[0], data[2:].decode())
    file.write(frame(CLOSE, data[:2], True))
    file.flush()
    print("ended:", file.read())


PROTOCOLS = sys.argv[3] if len(sys.argv) > 3 and sys.argv[1] == "ask" else ""
if sys.argv[1] == "ask":
    ask(sys.argv[2])
else:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH) if len(sys.argv) > 3 else None
    if tls:
        tls.load_cert_chain(sys.argv[3])
    listener = socket.create_server(("", int(sys.argv[2])))
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0], tls), daemon=True).start()
