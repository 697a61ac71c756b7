"""What an operator relies on: its finalizer, news of creates, changes and deletions, events it posts, children it adopts."""

import pathlib
import unittest
import uuid

from kopf.testing import KopfRunner
from kubernetes import client, config, watch

OPERATOR = pathlib.Path(__file__).with_name("operator_of_config_maps.py")
SECONDS_MAX = 20


class Operator(unittest.TestCase):
    def setUp(self):
        config.load_kube_config()
        self.core = client.CoreV1Api()
        self.namespace = f"operator-{uuid.uuid4().hex[:8]}"
        self.core.create_namespace({"metadata": {"name": self.namespace}})
        self.runner = KopfRunner(["run", "--standalone", "--namespace", self.namespace, str(OPERATOR)])
        self.runner.__enter__()

    def tearDown(self):
        self.runner.__exit__(None, None, None)
        print(self.runner.output)
        self.core.delete_namespace(self.namespace)

    def seen(self, of, is_it, name=None):
        """The first object of that name that is as wanted."""
        selector = {"field_selector": f"metadata.name={name}"} if name else {}
        stream = watch.Watch().stream(of, self.namespace, timeout_seconds=SECONDS_MAX, **selector)
        for event in stream:
            if is_it(event):
                return event["object"]
        self.fail(f"{name or 'what was wanted'} did not come to pass in {SECONDS_MAX} s")

    def config_map(self, name, is_it):
        return self.seen(self.core.list_namespaced_config_map, is_it, name)

    def test_a_copy_is_made_follows_and_goes(self):
        metadata = {"name": "a", "labels": {"copied": "yes"}}
        made = self.core.create_namespaced_config_map(self.namespace, {"metadata": metadata, "data": {"k": "1"}})

        copied = self.config_map("a-copy", lambda it: it["object"].data == {"k": "1"})
        owner = copied.metadata.owner_references[0]
        self.assertEqual((owner.kind, owner.uid, owner.controller), ("ConfigMap", made.metadata.uid, True))
        told = lambda it: (it["object"].metadata.annotations or {}).get("example.com/copy") == "a-copy"
        self.assertEqual(self.config_map("a", told).metadata.finalizers, ["example.com/copied"])
        self.seen(self.core.list_namespaced_event, lambda it: it["object"].reason == "Copied")

        self.core.patch_namespaced_config_map("a", self.namespace, {"data": {"k": "2"}})
        self.config_map("a-copy", lambda it: it["object"].data == {"k": "2"})

        since = self.core.list_namespaced_config_map(self.namespace).metadata.resource_version
        self.core.delete_namespaced_config_map("a", self.namespace)
        self.config_map("a-was-here", lambda it: True)
        gone = set()
        stream = watch.Watch().stream(
            self.core.list_namespaced_config_map, self.namespace, resource_version=since, timeout_seconds=SECONDS_MAX
        )
        for event in stream:
            if event["type"] == "DELETED":
                gone.add(event["object"].metadata.name)
            if gone == {"a", "a-copy"}:
                break
        self.assertEqual(gone, {"a", "a-copy"})


if __name__ == "__main__":
    unittest.main()
