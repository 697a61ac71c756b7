"""What Helm asks of a server, asked by a client library: releases kept as Secrets, three-way strategic merges (Helm 3), server-side
apply (Helm 4), definitions that are waited for before their objects, hooks that are awaited, and an uninstall in the foreground."""

import base64
import gzip
import json
import time
import unittest
import uuid

from kubernetes import client, config, dynamic, watch

SECONDS_MAX = 30
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
OWNER = {"owner": "helm", "name": "shop"}


def deployment(image, replicas=0, extra=()):
    containers = [{"name": "web", "image": image, "ports": [{"containerPort": 80}]}, *extra]
    labels = {"app.kubernetes.io/managed-by": "Helm", "app": "web"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": labels, "annotations": {"meta.helm.sh/release-name": "shop"}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}},
        },
    }


def three_way(original, modified, current):
    """As `strategicpatch.CreateThreeWayMergePatch`, for the one list that differs here: what the last release had and the new one has
    not goes, what others added stays."""
    containers = lambda it: {one["name"]: one for one in it["spec"]["template"]["spec"]["containers"]}
    changed = [it for name, it in containers(modified).items() if containers(current).get(name, {}).get("image") != it["image"]]
    gone = [{"$patch": "delete", "name": name} for name in containers(original) if name not in containers(modified)]
    return {"spec": {"template": {"spec": {"containers": changed + gone}}}}


class Helm(unittest.TestCase):
    def setUp(self):
        config.load_kube_config()
        self.api = client.ApiClient()
        self.core, self.apps, self.batch = client.CoreV1Api(), client.AppsV1Api(), client.BatchV1Api()
        self.namespace = f"helm-{uuid.uuid4().hex[:8]}"
        self.core.create_namespace({"metadata": {"name": self.namespace}})

    def tearDown(self):
        self.core.delete_namespace(self.namespace)

    def until(self, what, look):
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            if found := look():
                return found
            time.sleep(0.1)
        self.fail(f"{what} did not come to pass in {SECONDS_MAX} s")

    def ask(self, method, path, body=None, query=(), content_type="application/json"):
        """A request as it is, and its answer as it is."""
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        words = self.api.param_serialize(method, path, query_params=list(query), header_params=headers, body=body, auth_settings=["BearerToken"])
        answered = self.api.call_api(*words)
        text = answered.read().decode()
        if answered.status >= 400:
            error = client.ApiException(status=answered.status)
            error.body = text
            raise error
        return json.loads(text)

    def path(self, name="web"):
        return f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{name}"

    # Releases

    def keep_release(self, revision, status, manifest):
        release = {"name": "shop", "version": revision, "info": {"status": status}, "manifest": manifest}
        packed = base64.b64encode(gzip.compress(json.dumps(release).encode()))
        labels = {**OWNER, "version": str(revision), "status": status, "modifiedAt": str(int(time.time()))}
        metadata = {"name": f"sh.helm.release.v1.shop.v{revision}", "labels": labels}
        data = {"release": base64.b64encode(packed).decode()}
        return {"metadata": metadata, "type": "helm.sh/release.v1", "data": data}

    def test_releases_are_secrets(self):
        manifest = "x" * 900_000
        first = self.core.create_namespaced_secret(self.namespace, self.keep_release(1, "pending-install", manifest))
        self.assertEqual(first.type, "helm.sh/release.v1")
        # Two installs of one name: only one of them keeps its release.
        with self.assertRaises(client.ApiException) as twice:
            self.core.create_namespaced_secret(self.namespace, self.keep_release(1, "pending-install", ""))
        self.assertEqual(twice.exception.status, 409)
        # Helm updates without a resource version.
        self.core.replace_namespaced_secret(first.metadata.name, self.namespace, self.keep_release(1, "deployed", manifest))
        self.core.create_namespaced_secret(self.namespace, self.keep_release(2, "pending-upgrade", ""))
        find = lambda labels: self.core.list_namespaced_secret(self.namespace, label_selector=labels).items
        deployed = find("name=shop,owner=helm,status=deployed")
        self.assertEqual([it.metadata.labels["version"] for it in deployed], ["1"])
        unpacked = gzip.decompress(base64.b64decode(base64.b64decode(deployed[0].data["release"])))
        self.assertEqual(len(json.loads(unpacked)["manifest"]), len(manifest))
        self.assertEqual(len(find("owner=helm,status notin (deployed)")), 1)
        changed_type = {"type": "Opaque"}
        with self.assertRaises(client.ApiException) as refused:
            self.core.patch_namespaced_secret(first.metadata.name, self.namespace, changed_type)
        self.assertEqual(refused.exception.status, 422)
        # An aborted write of a release that is too large says so.
        with self.assertRaises(client.ApiException) as large:
            self.core.create_namespaced_secret(self.namespace, {"metadata": {"name": "large"}, "stringData": {"a": "x" * 1_100_000}})
        self.assertEqual(large.exception.status, 422)
        self.assertIn("Too long", large.exception.body)

    # Helm 3

    def test_an_upgrade_leaves_what_others_added(self):
        base = f"/apis/apps/v1/namespaces/{self.namespace}/deployments"
        old = deployment("web:1", extra=[{"name": "log", "image": "log:1"}])
        self.ask("POST", base, old, [("fieldManager", "helm"), ("fieldValidation", "Warn")])
        sidecar = {"spec": {"template": {"spec": {"containers": [{"name": "sidecar", "image": "sidecar:1"}]}}}}
        self.ask("PATCH", self.path(), sidecar, content_type=STRATEGIC)
        new = deployment("web:2")
        patch = three_way(old, new, self.ask("GET", self.path()))
        upgraded = self.ask("PATCH", self.path(), patch, [("fieldManager", "helm")], STRATEGIC)
        images = {it["name"]: it["image"] for it in upgraded["spec"]["template"]["spec"]["containers"]}
        self.assertEqual(images, {"web": "web:2", "sidecar": "sidecar:1"})
        # A rollback is the same the other way.
        back = self.ask("PATCH", self.path(), three_way(new, old, upgraded), [("fieldManager", "helm")], STRATEGIC)
        images = {it["name"]: it["image"] for it in back["spec"]["template"]["spec"]["containers"]}
        self.assertEqual(images, {"web": "web:1", "log": "log:1", "sidecar": "sidecar:1"})
        # It looks whether a release's objects are there, and whose they are.
        found = self.ask("GET", base, query=[("labelSelector", "app.kubernetes.io/managed-by=Helm")])
        self.assertEqual([it["metadata"]["annotations"]["meta.helm.sh/release-name"] for it in found["items"]], ["shop"])

    # Helm 4

    def test_server_side_apply(self):
        apply = lambda body, **query: self.ask("PATCH", self.path(), body, [("fieldManager", "helm"), *query.items()], APPLY)
        tried = apply(deployment("web:1"), dryRun="All")
        self.assertEqual(tried["spec"]["strategy"]["type"], "RollingUpdate")
        with self.assertRaises(client.ApiException) as absent:
            self.ask("GET", self.path())
        self.assertEqual(absent.exception.status, 404)
        made = apply(deployment("web:1"))
        self.assertEqual([(it["manager"], it["operation"]) for it in made["metadata"]["managedFields"]], [("helm", "Apply")])
        # Somebody scales it by hand: Helm is told, and may force it.
        by_hand = [("fieldManager", "kubectl"), ("force", "true")]
        scaled = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 3}}
        self.ask("PATCH", self.path(), scaled, by_hand, APPLY)
        with self.assertRaises(client.ApiException) as conflict:
            apply(deployment("web:2"), dryRun="All")
        self.assertEqual(conflict.exception.status, 409)
        causes = json.loads(conflict.exception.body)["details"]["causes"]
        self.assertEqual([(it["reason"], it["field"]) for it in causes], [("FieldManagerConflict", ".spec.replicas")])
        forced = apply(deployment("web:2"), force="true")
        self.assertEqual((forced["spec"]["replicas"], forced["metadata"]["generation"]), (0, 3))
        # What the chart no longer has goes.
        less = deployment("web:2")
        del less["metadata"]["annotations"]
        self.assertNotIn("meta.helm.sh/release-name", apply(less, force="true")["metadata"].get("annotations", {}))
        # An unknown field is an error where it is asked for, else a warning.
        wrong = deployment("web:2")
        wrong["spec"]["replica"] = 1
        with self.assertRaises(client.ApiException) as unknown:
            apply(wrong, force="true", fieldValidation="Strict")
        self.assertIn(".spec.replica: field not declared in schema", unknown.exception.body)

    def test_definitions_come_before_their_objects(self):
        plural = f"charts{uuid.uuid4().hex[:6]}"
        name = f"{plural}.helm.example.com"
        schema = {"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        names = {"plural": plural, "singular": plural[:-1], "kind": plural.capitalize()}
        spec = {"group": "helm.example.com", "scope": "Namespaced", "names": names, "versions": [version]}
        definitions = client.ApiextensionsV1Api()
        definitions.create_custom_resource_definition({"metadata": {"name": name}, "spec": spec})
        stream = watch.Watch().stream(definitions.list_custom_resource_definition, field_selector=f"metadata.name={name}", timeout_seconds=SECONDS_MAX)
        is_true = lambda it, kind: any(one.type == kind and one.status == "True" for one in it.status.conditions or [])
        next(it for it in stream if is_true(it["object"], "Established") and is_true(it["object"], "NamesAccepted"))
        # Helm reads discovery anew, and finds the kind at once.
        found = dynamic.DynamicClient(self.api, cache_file=f"/tmp/{name}").resources.get(api_version="helm.example.com/v1", kind=names["kind"])
        made = found.create({"apiVersion": found.group_version, "kind": names["kind"], "metadata": {"name": "a"}, "spec": {"x": 1}}, namespace=self.namespace)
        self.assertEqual(made.spec.x, 1)
        definitions.delete_custom_resource_definition(name)

    def test_hooks_are_awaited(self):
        hook = {
            "metadata": {"name": "migrate", "annotations": {"helm.sh/hook": "pre-upgrade", "helm.sh/hook-delete-policy": "before-hook-creation"}},
            "spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "m"}]}}},
        }
        for _ in range(2):
            # Whoever was here before is deleted, and waited for.
            options = client.V1DeleteOptions(propagation_policy="Background")
            try:
                self.batch.delete_namespaced_job("migrate", self.namespace, body=options)
                self.until("the end of the old job", lambda: not self.batch.list_namespaced_job(self.namespace).items)
            except client.ApiException as error:
                self.assertEqual(error.status, 404)
            job = self.batch.create_namespaced_job(self.namespace, hook)
            pod = self.until("its pod", lambda: self.core.list_namespaced_pod(self.namespace, label_selector=f"controller-uid={job.metadata.uid}").items)[0]
            # No node is here: the Pod ends by word of this test.
            done = {"status": {"phase": "Succeeded", "containerStatuses": []}}
            self.core.patch_namespaced_pod_status(pod.metadata.name, self.namespace, done)
            stream = watch.Watch().stream(self.batch.list_namespaced_job, self.namespace, field_selector="metadata.name=migrate", timeout_seconds=SECONDS_MAX)
            ended = next(it["object"] for it in stream if any(one.type == "Complete" for one in it["object"].status.conditions or []))
            self.assertEqual(ended.status.succeeded, 1)

    def test_an_uninstall_ends_with_its_dependents(self):
        self.apps.create_namespaced_deployment(self.namespace, deployment("web:1", replicas=2))
        pods = lambda: self.core.list_namespaced_pod(self.namespace).items
        self.until("two pods", lambda: len(pods()) == 2)
        self.apps.delete_namespaced_deployment("web", self.namespace, propagation_policy="Foreground")
        gone = []
        def look():
            for name, of in [("pods", pods), ("sets", lambda: self.apps.list_namespaced_replica_set(self.namespace).items), ("deployment", lambda: self.apps.list_namespaced_deployment(self.namespace).items)]:
                if name not in gone and not of():
                    gone.append(name)
            return "deployment" in gone
        self.until("the end of the deployment", look)
        self.assertEqual(gone, ["pods", "sets", "deployment"])


if __name__ == "__main__":
    unittest.main()
