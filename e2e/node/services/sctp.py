"""SCTP by hand, where the kernel has no sockets for it: the first packet of an association, and what answers it.

sctp.py answer PORT: answers each INIT to PORT with an INIT ACK. sctp.py ask ADDRESS PORT: what comes back to an INIT.
"""

import random, socket, struct, sys

INIT, INIT_ACK = 1, 2


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def packet(source, target, tag, chunk):
    body = struct.pack("!BBH", chunk, 0, 20) + struct.pack("!IIHHI", random.getrandbits(32) | 1, 65536, 1, 1, 1)
    head = struct.pack("!HHI", source, target, tag)
    return head + struct.pack("<I", crc32c(head + bytes(4) + body)) + body


def received(raw):
    """Source address, ports, tag, chunk and its tag; only of packets that are whole."""
    data, (address, _) = raw.recvfrom(2048)
    data = data[(data[0] & 15) * 4:]
    source, target, tag = struct.unpack("!HHI", data[:8])
    is_whole = struct.pack("<I", crc32c(data[:8] + bytes(4) + data[12:])) == data[8:12]
    return address, source, target, tag, data[12] if is_whole else None, struct.unpack("!I", data[16:20])[0]


raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_SCTP)
if sys.argv[1] == "answer":
    while True:
        address, source, target, _, chunk, tag = received(raw)
        if chunk == INIT and target == int(sys.argv[2]):
            raw.sendto(packet(target, source, tag, INIT_ACK), (address, 0))
else:
    raw.settimeout(3)
    here = random.randrange(20000, 30000)
    try:
        raw.sendto(packet(here, int(sys.argv[3]), 0, INIT), (sys.argv[2], 0))
        while (got := received(raw))[2] != here or got[4] != INIT_ACK:
            pass
        print(f"answered by {got[0]} from port {got[1]}")
    except TimeoutError:
        print("no answer")
    except PermissionError:
        print("refused")
