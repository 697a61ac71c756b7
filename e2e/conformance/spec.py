"""Specs of Kubernetes' conformance suite, played against the cluster of KUBECONFIG. A file holds an area's specs as functions under
`@spec(NAME)`; `FILE NAME` plays one of them and says `passed`. Each has a namespace of its own, and what it registers with
`finally_delete` goes when it ends."""
import contextlib, sys, time, uuid

import cluster

SPECS = {}
SECONDS_MAX = 30


def spec(name):
    def register(function):
        assert name not in SPECS, f"{name} is here twice"
        SPECS[name] = function
        return function
    return register


class Framework:
    """What one spec has to itself: a name that nobody else has, and a namespace whose labels say that name."""

    def __init__(self, stack):
        self.stack = stack
        self.unique = f"conformance-{uuid.uuid4().hex[:8]}"
        self.namespace = self.create_namespace("main", {self.unique: "true"})
        self.core = f"/api/v1/namespaces/{self.namespace}"
        self.apps = f"/apis/apps/v1/namespaces/{self.namespace}"

    def create_namespace(self, base, labels):
        name = f"{self.unique}-{base}"
        cluster.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        self.finally_delete(f"/api/v1/namespaces/{name}")
        return name

    def finally_delete(self, path):
        self.stack.callback(cluster.delete_if_there, path)

    def create(self, path, value):
        """Creates an object that goes when the spec ends."""
        made = cluster.create(path, value)
        self.finally_delete(f"{path}/{made['metadata']['name']}")
        return made


def eventually(what, holds, seconds=SECONDS_MAX):
    """The first true answer of `holds`; it is asked ten times a second."""
    deadline = time.monotonic() + seconds
    while not (answer := holds()):
        assert time.monotonic() < deadline, f"after {seconds} s there is still not: {what}"
        time.sleep(0.1)
    return answer


def refused(call, *parts):
    """The refusal of a call that must fail, with all these parts in its message."""
    try:
        made = call()
    except cluster.Refused as refusal:
        for part in parts:
            assert part in refusal.message, f"{part!r} is not in {refusal.message!r}"
        return refusal
    raise AssertionError(f"this was not refused: {made}")


def equal(got, expected, what="it"):
    assert got == expected, f"{what}: got {got!r}, expected {expected!r}"


def main():
    name = sys.argv[1] if len(sys.argv) == 2 else ""
    if name not in SPECS:
        sys.exit("usage: FILE NAME, one of:\n" + "\n".join(SPECS))
    with contextlib.ExitStack() as stack:
        SPECS[name](Framework(stack))
    print("passed")
