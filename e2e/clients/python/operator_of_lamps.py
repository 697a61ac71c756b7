"""An operator as people write them with Kopf: it brings its own kind, refuses and completes what is written through webhooks of its
own, holds what is deleted until it has put it out, and looks at each lamp now and then."""

import os

import kopf

LAMPS = ("example.com", "v1", "lamps")
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "lamps.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "lamps", "singular": "lamp", "kind": "Lamp"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"watts": {"type": "integer"}, "colour": {"type": "string"}},
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


@kopf.on.startup()
def set_up(settings, **_):
    settings.persistence.finalizer = "example.com/lit"
    # The server that asks it is on the same machine.
    of_webhooks = {"certfile": os.environ["CERTIFICATE"], "pkeyfile": os.environ["KEY"], "cafile": os.environ["CERTIFICATE"]}
    settings.admission.server = kopf.WebhookServer(addr="127.0.0.1", host="localhost", **of_webhooks)
    settings.admission.managed = "lamps.example.com"
    # What a server that is killed costs: the streams are begun again soon.
    settings.networking.error_backoffs = [0.2] * 100
    settings.watching.reconnect_backoff = 0.2
    settings.watching.server_timeout = 60


@kopf.on.mutate(*LAMPS, operations=["CREATE", "UPDATE"])
def complete(spec, patch, warnings, **_):
    if "colour" not in spec:
        patch.spec["colour"] = "white"
    if spec.get("watts", 0) > 60:
        warnings.append("it gets warm")


@kopf.on.validate(*LAMPS, operations=["CREATE", "UPDATE"])
def refuse(spec, **_):
    if spec.get("watts", 0) > 100:
        raise kopf.AdmissionError("no lamp has more than 100 watts", code=422)


@kopf.on.create(*LAMPS)
def light(spec, name, **_):
    return {"shines": spec["colour"]}


@kopf.on.update(*LAMPS, field="spec.colour")
def change(new, patch, **_):
    patch.status["changed"] = new


@kopf.on.resume(*LAMPS)
def resume(patch, status, **_):
    patch.status["resumed"] = status.get("resumed", 0) + 1


@kopf.timer(*LAMPS, interval=1)
def tick(patch, status, **_):
    patch.status["ticks"] = status.get("ticks", 0) + 1


@kopf.on.delete(*LAMPS)
def put_out(name, namespace, body, **_):
    kopf.info(body, reason="PutOut", message=f"{name} is dark")
