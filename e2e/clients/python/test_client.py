"""What a program written with the Python client relies on."""

import json
import threading
import unittest
import uuid

import websocket
import yaml
from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.informer import SharedInformer
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

SECONDS_MAX = 20


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


class InNamespace(unittest.TestCase):
    """Each test has a namespace of its own."""

    def setUp(self):
        self.core = client.CoreV1Api()
        self.namespace = f"python-{uuid.uuid4().hex[:8]}"
        self.core.create_namespace({"metadata": {"name": self.namespace}})

    def tearDown(self):
        self.core.delete_namespace(self.namespace)

    def create(self, name, **data):
        return self.core.create_namespaced_config_map(self.namespace, config_map(name, **data))

    def patch(self, name, body, content_type):
        return self.core.patch_namespaced_config_map(name, self.namespace, body, _content_type=content_type)


class Objects(InNamespace):
    def test_create_read_replace_delete(self):
        created = self.create("a", k="1")
        self.assertTrue(created.metadata.uid)
        created.data["k"] = "2"
        replaced = self.core.replace_namespaced_config_map("a", self.namespace, created)
        self.assertNotEqual(replaced.metadata.resource_version, created.metadata.resource_version)
        self.assertEqual(self.core.read_namespaced_config_map("a", self.namespace).data, {"k": "2"})
        self.core.delete_namespaced_config_map("a", self.namespace)
        with self.assertRaises(ApiException) as caught:
            self.core.read_namespaced_config_map("a", self.namespace)
        self.assertEqual(caught.exception.status, 404)

    def test_errors_say_what_is_wrong(self):
        self.create("a")
        stale = self.core.read_namespaced_config_map("a", self.namespace)
        self.patch("a", {"data": {"k": "1"}}, "application/merge-patch+json")
        bad_name = {"metadata": {"name": "Not A Name"}}
        for call, code, reason in [
            (lambda: self.core.read_namespaced_config_map("none", self.namespace), 404, "NotFound"),
            (lambda: self.create("a"), 409, "AlreadyExists"),
            (lambda: self.core.replace_namespaced_config_map("a", self.namespace, stale), 409, "Conflict"),
            (lambda: self.core.create_namespaced_config_map(self.namespace, bad_name), 422, "Invalid"),
            (lambda: self.core.list_namespaced_config_map(self.namespace, _continue="x"), 400, "BadRequest"),
        ]:
            with self.assertRaises(ApiException) as caught:
                call()
            status = yaml.safe_load(caught.exception.body)
            self.assertEqual((caught.exception.status, status["reason"]), (code, reason), status)
            self.assertEqual(status["kind"], "Status")

    def test_typed_objects_of_many_groups_come_back_whole(self):
        labels = {"app": "web"}
        container = client.V1Container(name="web", image="example.test/web:1", ports=[client.V1ContainerPort(container_port=80)])
        template = client.V1PodTemplateSpec(
            metadata=client.V1ObjectMeta(labels=labels), spec=client.V1PodSpec(containers=[container])
        )
        spec = client.V1DeploymentSpec(replicas=0, selector=client.V1LabelSelector(match_labels=labels), template=template)
        deployment = client.V1Deployment(metadata=client.V1ObjectMeta(name="web"), spec=spec)
        created = client.AppsV1Api().create_namespaced_deployment(self.namespace, deployment)
        self.assertEqual(created.spec.strategy.rolling_update.max_surge, "25%")
        self.assertEqual(created.spec.template.spec.containers[0].ports[0].protocol, "TCP")
        rule = client.V1PolicyRule(api_groups=[""], resources=["pods"], verbs=["get"])
        role = client.V1Role(metadata=client.V1ObjectMeta(name="reader"), rules=[rule])
        created = client.RbacAuthorizationV1Api().create_namespaced_role(self.namespace, role)
        self.assertEqual(created.rules[0].verbs, ["get"])

    def test_scale(self):
        apps = client.AppsV1Api()
        pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "example.test/c"}]}}
        spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": pod}
        apps.create_namespaced_deployment(self.namespace, {"metadata": {"name": "d"}, "spec": spec})
        apps.patch_namespaced_deployment_scale("d", self.namespace, {"spec": {"replicas": 2}})
        self.assertEqual(apps.read_namespaced_deployment_scale("d", self.namespace).spec.replicas, 2)


class Lists(InNamespace):
    def test_pages_are_one_state(self):
        for n in range(7):
            self.create(f"m{n}")
        page = self.core.list_namespaced_config_map(self.namespace, limit=3, field_selector="metadata.name!=kube-root-ca.crt")
        version, names = page.metadata.resource_version, [it.metadata.name for it in page.items]
        self.core.delete_namespaced_config_map("m5", self.namespace)
        while page.metadata._continue:
            page = self.core.list_namespaced_config_map(
                self.namespace,
                limit=3,
                field_selector="metadata.name!=kube-root-ca.crt",
                _continue=page.metadata._continue,
            )
            self.assertEqual(page.metadata.resource_version, version)
            names += [it.metadata.name for it in page.items]
        self.assertEqual(names, [f"m{n}" for n in range(7)])

    def test_selectors(self):
        for name, colour in [("a", "red"), ("b", "blue"), ("c", "red")]:
            self.core.create_namespaced_config_map(self.namespace, {"metadata": {"name": name, "labels": {"colour": colour}}})
        for selector, expected in [("colour=red", ["a", "c"]), ("colour notin (red),colour", ["b"])]:
            found = self.core.list_namespaced_config_map(self.namespace, label_selector=selector)
            self.assertEqual([it.metadata.name for it in found.items], expected)


class Watches(InNamespace):
    def test_a_watch_goes_on_where_it_was_left(self):
        start = self.core.list_namespaced_config_map(self.namespace).metadata.resource_version
        self.create("a")
        self.patch("a", {"data": {"k": "1"}}, "application/merge-patch+json")
        version = self.expect(start, [("ADDED", "a"), ("MODIFIED", "a")])
        self.create("b")
        self.core.delete_namespaced_config_map("a", self.namespace)
        self.expect(version, [("ADDED", "b"), ("DELETED", "a")])

    def expect(self, version, expected):
        seen = []
        stream = watch.Watch().stream(
            self.core.list_namespaced_config_map,
            self.namespace,
            resource_version=version,
            timeout_seconds=SECONDS_MAX,
            field_selector="metadata.name!=kube-root-ca.crt",
        )
        for event in stream:
            seen.append((event["type"], event["object"].metadata.name))
            version = event["object"].metadata.resource_version
            if len(seen) == len(expected):
                break
        self.assertEqual(seen, expected)
        return version

    def test_a_watch_may_be_a_websocket(self):
        path = f"/api/v1/namespaces/{self.namespace}/configmaps?watch=true&fieldSelector=metadata.name%3Da"
        ours = client.Configuration.get_default_copy()
        socket = websocket.create_connection(
            ours.host.replace("https", "wss", 1) + path,
            sslopt={"ca_certs": ours.ssl_ca_cert, "certfile": ours.cert_file, "keyfile": ours.key_file},
            timeout=SECONDS_MAX,
        )
        self.addCleanup(socket.close)
        self.create("a", k="1")
        self.core.delete_namespaced_config_map("a", self.namespace)
        events = [json.loads(socket.recv()) for _ in range(2)]
        seen = [(event["type"], event["object"]["data"]) for event in events]
        self.assertEqual(seen, [("ADDED", {"k": "1"}), ("DELETED", {"k": "1"})])

    def test_an_informer_keeps_a_copy(self):
        seen = {kind: threading.Event() for kind in ["ADDED", "MODIFIED", "DELETED"]}
        informer = SharedInformer(self.core.list_namespaced_config_map, self.namespace, label_selector="watched=yes")
        for kind, event in seen.items():
            informer.add_event_handler(kind, lambda _, event=event: event.set())
        informer.start()
        self.addCleanup(informer.stop)
        self.core.create_namespaced_config_map(self.namespace, {"metadata": {"name": "a", "labels": {"watched": "yes"}}})
        self.assertTrue(seen["ADDED"].wait(SECONDS_MAX))
        self.patch("a", {"data": {"k": "1"}}, "application/merge-patch+json")
        self.assertTrue(seen["MODIFIED"].wait(SECONDS_MAX))
        self.assertEqual(informer.cache.get_by_key(f"{self.namespace}/a").data, {"k": "1"})
        self.core.delete_namespaced_config_map("a", self.namespace)
        self.assertTrue(seen["DELETED"].wait(SECONDS_MAX))
        self.assertEqual(informer.cache.list(), [])


class Patches(InNamespace):
    def test_json_patch(self):
        self.create("a", k="1")
        patched = self.patch("a", [{"op": "replace", "path": "/data/k", "value": "2"}], "application/json-patch+json")
        self.assertEqual(patched.data, {"k": "2"})
        with self.assertRaises(ApiException) as caught:
            self.patch("a", [{"op": "test", "path": "/data/k", "value": "1"}], "application/json-patch+json")
        self.assertEqual(caught.exception.status, 422)

    def test_merge_patch(self):
        self.create("a", k="1", gone="1")
        patched = self.patch("a", {"data": {"new": "1", "gone": None}}, "application/merge-patch+json")
        self.assertEqual(patched.data, {"k": "1", "new": "1"})

    def test_strategic_merge_patch(self):
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "i:1"}, {"name": "b", "image": "i:1"}]}}
        self.core.create_namespaced_pod(self.namespace, pod)
        patched = self.core.patch_namespaced_pod(
            "p",
            self.namespace,
            {"spec": {"containers": [{"name": "b", "image": "i:2"}]}},
            _content_type="application/strategic-merge-patch+json",
        )
        self.assertEqual([it.image for it in patched.spec.containers], ["i:1", "i:2"])

    def test_server_side_apply(self):
        apply = lambda manager, force=None, **data: self.core.patch_namespaced_config_map(
            "a",
            self.namespace,
            config_map("a", **data),
            field_manager=manager,
            force=force,
            _content_type="application/apply-patch+yaml",
        )
        apply("first", mine="1", shared="1")
        with self.assertRaises(ApiException) as caught:
            apply("second", shared="2")
        self.assertEqual(caught.exception.status, 409)
        self.assertIn('conflict with "first"', yaml.safe_load(caught.exception.body)["message"])
        self.assertEqual(apply("second", force=True, shared="2").data, {"mine": "1", "shared": "2"})
        self.assertEqual(apply("first", mine="1").data, {"mine": "1", "shared": "2"})
        self.assertEqual(apply("second").data, {"mine": "1"})


class Discovery(InNamespace):
    def test_the_dynamic_client_finds_kinds_by_itself(self):
        found = dynamic.DynamicClient(client.ApiClient())
        config_maps = found.resources.get(api_version="v1", kind="ConfigMap")
        config_maps.create(body=config_map("a", k="1"), namespace=self.namespace)
        patched = config_maps.patch(
            body={"data": {"k": "2"}}, name="a", namespace=self.namespace, content_type="application/merge-patch+json"
        )
        self.assertEqual(patched.data.k, "2")
        applied = config_maps.server_side_apply(
            body=config_map("b", k="1"), namespace=self.namespace, name="b", field_manager="dynamic"
        )
        self.assertEqual(applied.metadata.managedFields[0].manager, "dynamic")
        deployments = found.resources.get(api_version="apps/v1", kind="Deployment")
        self.assertEqual(deployments.get(namespace=self.namespace).items, [])
        self.assertEqual(len(found.resources.search(kind="Lease")), 1)

    def test_groups_and_resources(self):
        groups = [it.name for it in client.ApisApi().get_api_versions().groups]
        self.assertIn("apps", groups)
        resources = {it.name: it for it in client.AppsV1Api().get_api_resources().resources}
        self.assertEqual(resources["deployments"].kind, "Deployment")
        self.assertIn("deployments/scale", resources)
        self.assertTrue(client.VersionApi().get_code().git_version.startswith("v1."))

    def test_files_of_many_objects(self):
        documents = f"""
apiVersion: v1
kind: ServiceAccount
metadata: {{name: runner, namespace: {self.namespace}}}
---
apiVersion: v1
kind: List
items:
- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: listed, namespace: {self.namespace}}}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: runner, namespace: {self.namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}
subjects: [{{kind: ServiceAccount, name: runner, namespace: {self.namespace}}}]
"""
        utils.create_from_yaml(client.ApiClient(), yaml_objects=list(yaml.safe_load_all(documents)))
        self.core.read_namespaced_service_account("runner", self.namespace)
        self.core.read_namespaced_config_map("listed", self.namespace)
        with self.assertRaises(utils.FailToCreateError):
            utils.create_from_yaml(client.ApiClient(), yaml_objects=list(yaml.safe_load_all(documents)))


class Leases(InNamespace):
    def test_one_leads_at_a_time(self):
        order, led = [], {name: threading.Event() for name in ["first", "second"]}

        def candidate(name, work):
            lock = LeaseLock("lead", self.namespace, name)
            settings = electionconfig.Config(
                lock, lease_duration=4, renew_deadline=3, retry_period=1, onstarted_leading=work, onstopped_leading=None
            )
            return threading.Thread(target=leaderelection.LeaderElection(settings).run, daemon=True)

        def lead(name, and_then=None):
            order.append(name)
            led[name].set()
            if and_then:
                raise and_then

        # The first gives up as soon as it leads, and the second takes over when its lease has run out.
        candidate("first", lambda: lead("first", RuntimeError("enough"))).start()
        self.assertTrue(led["first"].wait(SECONDS_MAX))
        candidate("second", lambda: lead("second")).start()
        self.assertTrue(led["second"].wait(SECONDS_MAX))
        self.assertEqual(order, ["first", "second"])
        lease = client.CoordinationV1Api().read_namespaced_lease("lead", self.namespace)
        self.assertEqual(lease.spec.holder_identity, "second")


class Identity(InNamespace):
    def test_a_token_is_somebody(self):
        self.core.create_namespaced_service_account(self.namespace, {"metadata": {"name": "robot"}})
        request = {"spec": {"expirationSeconds": 600}}
        token = self.core.create_namespaced_service_account_token("robot", self.namespace, request).status.token
        review = client.AuthenticationV1Api().create_token_review({"spec": {"token": token}})
        self.assertTrue(review.status.authenticated)
        self.assertEqual(review.status.user.username, f"system:serviceaccount:{self.namespace}:robot")
        access = client.AuthorizationV1Api().create_subject_access_review(
            {"spec": {"user": review.status.user.username, "resourceAttributes": {"verb": "get", "resource": "pods"}}}
        )
        self.assertFalse(access.status.allowed)


if __name__ == "__main__":
    config.load_kube_config()
    unittest.main(verbosity=2)
