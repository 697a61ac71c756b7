"""The webhooks that the suite runs in Pods, served by the spec itself behind a Service. The path says which one answers."""
import base64, http.server, json, os, socket, ssl, subprocess, tempfile, threading

import cluster

MARK, UNWANTED = "mark", "unwanted"
PORT = 8443


def patched(*operations):
    return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


def denied(*messages):
    return {"allowed": not messages, "status": {"message": "; ".join(messages)}}


def pods(request, server):
    pod = request["object"]
    label = pod["metadata"].get("labels", {}).get(MARK)
    if label == "hang":
        server.end.wait(60)
    names = [it["name"] for it in pod["spec"]["containers"]]
    messages = ["the name of a container is unwanted"] * any(UNWANTED in it for it in names)
    return denied(*messages, *["its label is unwanted"] * (label == UNWANTED))


def attached_pods(request, _):
    it = (request["operation"], request["name"], request["object"].get("container"))
    unwanted = it == ("CONNECT", "attached", "main")
    return denied(*["nobody may attach to it"] * unwanted)


def config_maps(request, _):
    data = (request["object"] or {}).get("data", {})
    return denied(*["its data are unwanted"] * (data.get(MARK) == UNWANTED))


def custom_resources(request, _):
    if request["operation"] == "DELETE":
        kept = "kept" in request["oldObject"].get("data", {}).values()
        return denied(*["it is kept because of its data"] * kept)
    unwanted = UNWANTED in request["object"].get("data", {}).values()
    return denied(*["its data are unwanted"] * unwanted)


def definitions(request, _):
    unwanted = request["object"]["metadata"].get("labels", {}).get(MARK) == UNWANTED
    return denied(*["the label of the definition is unwanted"] * unwanted)


def next_stage(request, _):
    """Each call adds the stage after the one that is there."""
    data = request["object"].get("data", {})
    stages = [("mutation-start", "mutation-stage-1"), ("mutation-stage-1", "mutation-stage-2")]
    due = [after for before, after in stages if data.get(before) == "yes"]
    return patched(*[{"op": "add", "path": f"/data/{it}", "value": "yes"} for it in due])


def init_container(request, _):
    container = {"image": "added-image", "name": "added-by-webhook", "resources": {}}
    if request["object"]["spec"].get("initContainers"):
        return {"allowed": True}
    return patched({"op": "add", "path": "/spec/initContainers", "value": [container]})


def added_label(request, _):
    labels = request["object"]["metadata"].get("labels", {}) | {"added-label": "yes"}
    return patched({"op": "add", "path": "/metadata/labels", "value": labels})


def delayed(_, server):
    server.end.wait(5)
    return {"allowed": True}


WEBHOOKS = {"/pods": pods, "/pods/attach": attached_pods, "/configmaps": config_maps, "/custom-resource": custom_resources, "/crd": definitions,
            "/mutating-configmaps": next_stage, "/mutating-custom-resource": next_stage, "/mutating-pods": init_container, "/add-label": added_label,
            "/always-deny": lambda *_: denied("it denies everything"), "/always-allow-delay-5s": delayed}


def converted(value, to):
    value = {**value, "apiVersion": to}
    if to.endswith("/v2") and "hostPort" in value:
        value["host"], value["port"] = value.pop("hostPort").split(":")
    elif to.endswith("/v1") and ("host" in value or "port" in value):
        value["hostPort"] = f"{value.pop('host', '')}:{value.pop('port', '')}"
    return value


def conversion(request):
    objects = [converted(it, request["desiredAPIVersion"]) for it in request["objects"]]
    return {"convertedObjects": objects, "result": {"status": "Success"}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path, request = self.path.split("?")[0], review["request"]
        self.server.asked.append((path, request))
        if path == "/crdconvert":
            response = conversion(request)
        elif path in WEBHOOKS:
            response = WEBHOOKS[path](request, self.server)
        else:
            self.send_error(404)
            return
        body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": {"uid": request["uid"], **response}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # Who asked has gone.


def own_address():
    """The one by which others reach this machine; nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as it:
        it.connect(("192.0.2.1", 9))
        return it.getsockname()[0]


class WebhookServer:
    """It is found as the Service `service` of the spec's namespace, whose only endpoint is this process."""

    def __init__(self, framework, service):
        self.framework, self.service = framework, service
        folder = framework.stack.enter_context(tempfile.TemporaryDirectory())
        certificate, key = os.path.join(folder, "ca.pem"), os.path.join(folder, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=webhook", "-addext", f"subjectAltName=DNS:{service}.{framework.namespace}.svc", "-keyout", key, "-out", certificate],
                       check=True, capture_output=True)
        self.ca = base64.b64encode(open(certificate, "rb").read()).decode()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server = Server(("0.0.0.0", 0), Handler)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.end, server.asked = threading.Event(), []
        self.asked = server.asked
        threading.Thread(target=server.serve_forever, daemon=True).start()
        framework.stack.callback(server.end.set)
        self._register(server.server_port)

    def _register(self, port):
        namespace = self.framework.namespace
        cluster.create(f"/api/v1/namespaces/{namespace}/services", {
            "metadata": {"name": self.service}, "spec": {"ports": [{"port": PORT, "targetPort": port}]}})
        cluster.create(f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices", {
            "metadata": {"name": self.service, "labels": {"kubernetes.io/service-name": self.service}}, "addressType": "IPv4",
            "endpoints": [{"addresses": [own_address()], "conditions": {"ready": True}}], "ports": [{"port": port, "protocol": "TCP"}]})

    def client_config(self, path, with_ca=True):
        service = {"namespace": self.framework.namespace, "name": self.service, "path": path, "port": PORT}
        return {"service": service, **({"caBundle": self.ca} if with_ca else {})}
