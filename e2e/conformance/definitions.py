"""CustomResourceDefinitions for specs."""
import uuid

import cluster
from spec import eventually

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def version(name, schema=None, storage=False, served=True, **more):
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema or ANYTHING}, **more}


def manifest(group, versions, scope="Namespaced", names=None, labels=None, **more):
    """A definition with names that no other has, unless it is told them."""
    suffix = uuid.uuid4().hex[:6]
    names = names or {"plural": f"e2e-test-{suffix}s", "singular": f"e2e-test-{suffix}", "kind": f"E2e-test-{suffix}",
                      "listKind": f"E2e-test-{suffix}List"}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{names['plural']}.{group}", "labels": labels or {}},
            "spec": {"group": group, "scope": scope, "names": names, "versions": versions, **more}}


class Definition:
    """One that is served."""

    def __init__(self, framework, value):
        self.made = framework.create(PATH, value)
        self.name, self.spec = self.made["metadata"]["name"], self.made["spec"]
        self.kind, self.plural, self.group = self.spec["names"]["kind"], self.spec["names"]["plural"], self.spec["group"]
        self.at = f"{PATH}/{self.name}"
        self.wait_served()

    def wait_served(self):
        """Its status says so last: until then whoever reads and writes it may meet that write."""
        established = {"type": "Established", "status": "True"}
        says = lambda: any(established.items() <= it.items() for it in cluster.get(self.at)["status"].get("conditions") or [])
        eventually(f"{self.name} is established", says)
        for it in cluster.get(self.at)["spec"]["versions"]:
            if it["served"]:
                path = f"/apis/{self.group}/{it['name']}/{self.plural}"
                eventually(f"{path} is served", lambda: cluster.is_there(path))

    def path(self, version, namespace=None):
        inside = f"namespaces/{namespace}/" if namespace else ""
        return f"/apis/{self.group}/{version}/{inside}{self.plural}"

    def instance(self, version, name, **fields):
        return {"apiVersion": f"{self.group}/{version}", "kind": self.kind, "metadata": {"name": name}, **fields}
