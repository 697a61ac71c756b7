"""An operator with a kind and webhooks of its own, through a server that is killed, and its own death: nothing is lost."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import urllib3
from kubernetes import client, config
from operator_of_lamps import DEFINITION

SECONDS_MAX = 40
OPERATOR = pathlib.Path(__file__).with_name("operator_of_lamps.py")
PLACE = ("example.com", "v1", "default", "lamps")


def until(what, look):
    """What `look` finds, as soon as it finds anything. A server that is away finds nothing."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        try:
            found = look()
        except (client.ApiException, urllib3.exceptions.HTTPError):
            found = None
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what} did not come to pass in {SECONDS_MAX} s")


class Lamps(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="lamps-", dir=os.environ["CORTEN_E2E_DIR"])
        self.port = str(int(os.environ["CORTEN_PORT"]) % 1000 + 16000)
        self.start_server()
        config.load_kube_config(f"{self.folder}/data/admin.kubeconfig")
        self.objects = client.CustomObjectsApi()
        self.key, self.certificate = f"{self.folder}/key.pem", f"{self.folder}/certificate.pem"
        new_key = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=lamps"]
        files = ["-addext", "subjectAltName=DNS:localhost", "-keyout", self.key, "-out", self.certificate]
        subprocess.run(new_key + files, check=True, capture_output=True)
        until("the API", lambda: client.CoreV1Api().list_namespace())
        client.ApiextensionsV1Api().create_custom_resource_definition(DEFINITION)
        until("lamps", lambda: self.objects.list_namespaced_custom_object(*PLACE))
        self.start_operator()

    def tearDown(self):
        for process in [self.operator, self.server]:
            process.terminate()
            process.wait(30)
        print(open(f"{self.folder}/operator.log").read()[-8000:])

    def start_server(self):
        words = ["corten", "server", "--bind", "127.0.0.1", "--port", self.port, "--data-dir", f"{self.folder}/data"]
        self.server = subprocess.Popen(words, stderr=open(f"{self.folder}/server.log", "a"))
        until("a kubeconfig", lambda: os.path.exists(f"{self.folder}/data/admin.kubeconfig"))

    def start_operator(self):
        words = [sys.executable, "-m", "kopf", "run", "--standalone", "--namespace", "default", str(OPERATOR)]
        its = {"KUBECONFIG": f"{self.folder}/data/admin.kubeconfig", "CERTIFICATE": self.certificate, "KEY": self.key}
        log = open(f"{self.folder}/operator.log", "a")
        self.operator = subprocess.Popen(words, env={**os.environ, **its}, stdout=log, stderr=log)
        webhooks = client.AdmissionregistrationV1Api()
        configurations = [webhooks.read_validating_webhook_configuration, webhooks.read_mutating_webhook_configuration]
        until("its webhooks", lambda: all(it("lamps.example.com").webhooks for it in configurations))

    def create(self, name, spec):
        lamp = {"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": {"name": name}, "spec": spec}
        return self.objects.create_namespaced_custom_object(*PLACE, lamp)

    def get(self, name):
        return self.objects.get_namespaced_custom_object(*PLACE, name)

    def status(self, name):
        return self.get(name).get("status", {})

    def paint(self, name, colour):
        return self.objects.patch_namespaced_custom_object(*PLACE, name, {"spec": {"colour": colour}})

    def is_gone(self, name):
        try:
            self.get(name)
        except client.ApiException as error:
            return error.status == 404
        return False

    def ticks_on(self, name):
        before = self.status(name).get("ticks", 0)
        until(f"a tick of {name}", lambda: self.status(name).get("ticks", 0) > before)

    def test_nothing_is_lost(self):
        # Completed by one webhook, refused by the other; the finalizer and the handlers.
        self.assertEqual(self.create("a", {"watts": 40})["spec"], {"watts": 40, "colour": "white"})
        with self.assertRaises(client.ApiException) as refused:
            self.create("b", {"watts": 200})
        self.assertEqual(refused.exception.status, 422)
        self.assertIn("denied the request: no lamp has more than 100 watts", refused.exception.body)
        shone = until("a light", lambda: self.get("a") if self.status("a").get("light") else None)
        self.assertEqual(shone["status"]["light"], {"shines": "white"})
        self.assertEqual(shone["metadata"]["finalizers"], ["example.com/lit"])
        self.paint("a", "red")
        until("red", lambda: self.status("a").get("changed") == "red")
        self.ticks_on("a")

        # The server is killed, and comes back to the same folder: the operator goes on by itself.
        self.create("c", {"watts": 90})
        os.kill(self.server.pid, signal.SIGKILL)
        self.server.wait()
        self.start_server()
        until("blue", lambda: self.paint("a", "blue"))
        until("blue", lambda: self.status("a").get("changed") == "blue")
        until("the light of c", lambda: self.status("c").get("light"))
        self.ticks_on("a")
        self.create("d", {})
        until("the light of d", lambda: self.status("d").get("light"))

        # The operator is killed: what is deleted meanwhile is held, and let go when it is back.
        os.kill(self.operator.pid, signal.SIGKILL)
        self.operator.wait()
        self.objects.delete_namespaced_custom_object(*PLACE, "c")
        self.assertIn("deletionTimestamp", self.get("c")["metadata"])
        resumed = self.status("a").get("resumed", 0)
        self.start_operator()
        until("the end of c", lambda: self.is_gone("c"))
        until("a resumed", lambda: self.status("a").get("resumed", 0) > resumed)
        self.ticks_on("a")
        events = client.CoreV1Api().list_namespaced_event("default", field_selector="reason=PutOut").items
        self.assertEqual([it.involved_object.name for it in events], ["c"])

        for name in "ad":
            self.objects.delete_namespaced_custom_object(*PLACE, name)
            until(f"the end of {name}", lambda: self.is_gone(name))
        client.ApiextensionsV1Api().delete_custom_resource_definition("lamps.example.com")


if __name__ == "__main__":
    unittest.main()
