"""An operator as people write them with Kopf: it keeps a copy of each ConfigMap labelled `copied`."""

import kopf
from kubernetes import client, config

WATCHED = {"labels": {"copied": "yes"}}


@kopf.on.startup()
def log_in(settings, **_):
    config.load_kube_config()
    settings.persistence.finalizer = "example.com/copied"


@kopf.on.create("v1", "configmaps", **WATCHED)
def copy(name, namespace, body, patch, **_):
    copied = {"metadata": {"name": f"{name}-copy"}, "data": dict(body.get("data", {}))}
    kopf.adopt(copied)
    client.CoreV1Api().create_namespaced_config_map(namespace, copied)
    kopf.info(body, reason="Copied", message=f"{name}-copy was made")
    patch.metadata.annotations["example.com/copy"] = f"{name}-copy"


@kopf.on.update("v1", "configmaps", field="data", **WATCHED)
def follow(name, namespace, new, **_):
    client.CoreV1Api().patch_namespaced_config_map(f"{name}-copy", namespace, {"data": new})


@kopf.on.delete("v1", "configmaps", **WATCHED)
def remember(name, namespace, **_):
    client.CoreV1Api().create_namespaced_config_map(namespace, {"metadata": {"name": f"{name}-was-here"}})
