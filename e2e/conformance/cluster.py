"""A client of the cluster of KUBECONFIG, with nothing but Python's own library: requests with the administrator's certificate, patches
of every type, watches."""
import atexit, base64, contextlib, http.client, json, os, queue, shutil, ssl, subprocess, tempfile, threading, urllib.parse

WATCH_SECONDS_MAX = 120


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, code, text):
        super().__init__(f"{code}: {text}")
        self.code, self.text = code, text
        try:
            self.status = json.loads(text)
        except ValueError:
            self.status = {}
        self.message = self.status.get("message", text)
        self.reason = self.status.get("reason", "")


def _administrator():
    """Where the server is, and files with its authority, and the administrator's certificate and key."""
    config = json.loads(subprocess.run(["kubectl", "config", "view", "--raw", "-o", "json"], check=True, capture_output=True).stdout)
    server, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)

    def file(name, data):
        path = os.path.join(folder, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as it:
            it.write(base64.b64decode(data))
        return path

    files = [file("ca", server["certificate-authority-data"]), file("crt", user["client-certificate-data"]), file("key", user["client-key-data"])]
    return urllib.parse.urlsplit(server["server"]).netloc, *files


ADDRESS, AUTHORITY, CERTIFICATE, KEY = _administrator()


def context(with_certificate=True):
    it = ssl.create_default_context(cafile=AUTHORITY)
    if with_certificate:
        it.load_cert_chain(CERTIFICATE, KEY)
    return it


CONTEXT = context()


def _ask(method, path, body=None, headers=None, seconds=40):
    connection = http.client.HTTPSConnection(ADDRESS, context=CONTEXT, timeout=seconds)
    connection.request(method, path, body, {"Accept": "application/json", **(headers or {})})
    return connection, connection.getresponse()


def answer(method, path, body=None, headers=None):
    """The code, the headers and the text of an answer, whatever it says."""
    connection, response = _ask(method, path, body, headers)
    with contextlib.closing(connection):
        return response.status, response.headers, response.read().decode()


def call(method, path, body=None, headers=None):
    code, _, text = answer(method, path, body, headers)
    if code >= 300:
        raise Refused(code, text)
    return json.loads(text)


def get(path, **query):
    return call("GET", path + ("?" + urllib.parse.urlencode(query) if query else ""))


def create(path, value):
    return call("POST", path, json.dumps(value), {"Content-Type": "application/json"})


def update(path, value):
    return call("PUT", path, json.dumps(value), {"Content-Type": "application/json"})


def patch(path, value, kind="merge"):
    """`kind` is one of merge, json, strategic-merge."""
    return call("PATCH", path, json.dumps(value), {"Content-Type": f"application/{kind}-patch+json"})


def apply(path, text):
    """Server-side apply of YAML."""
    return call("PATCH", path, text, {"Content-Type": "application/apply-patch+yaml"})


def delete(path, options=None, **query):
    path += "?" + urllib.parse.urlencode(query) if query else ""
    return call("DELETE", path, json.dumps(options or {}), {"Content-Type": "application/json"})


def delete_if_there(path):
    """At once, also what no kubelet ends."""
    try:
        delete(path, {"gracePeriodSeconds": 0})
    except Refused as refusal:
        if refusal.code != 404:
            raise


def is_there(path):
    try:
        get(path)
    except Refused as refusal:
        if refusal.code == 404:
            return False
        raise
    return True


class Watch:
    """Events of a list, as they come. It is open when this is made."""

    def __init__(self, path, **query):
        query = urllib.parse.urlencode({"watch": "true", **query})
        self.connection, self.response = _ask("GET", f"{path}?{query}", seconds=WATCH_SECONDS_MAX)
        if self.response.status != 200:
            raise Refused(self.response.status, self.response.read().decode())
        self.queue = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            while line := self.response.readline():
                self.queue.put(json.loads(line))
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass  # Who closes the watch ends this thread.

    def next(self, seconds=30):
        try:
            return self.queue.get(timeout=seconds)
        except queue.Empty:
            raise AssertionError(f"no event came in {seconds} s") from None

    def rest(self):
        """What has come and was not taken yet."""
        return [self.queue.get() for _ in range(self.queue.qsize())]
