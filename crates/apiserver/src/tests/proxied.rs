//! What goes on to a Pod through `proxy`, byte by byte, and what of its answers comes back.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::mpsc,
    task::JoinSet,
};

use super::{
    frames::{self, Frames, Heard, frame, headers},
    https::{HttpsServer, admin, plain, serving},
    server,
};
use crate::{Config, KubeletClient};

const PATIENCE: Duration = Duration::from_secs(20);
const PROXY: &str = "/api/v1/namespaces/default/pods/web/proxy";
const X: &str = "/api/v1/namespaces/default/pods/web/proxy/x";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// What runs in the Pod: tells what it got on each connection once that has been quiet for a moment, and answers alike.
struct Pod {
    address: SocketAddr,
    heard: mpsc::UnboundedReceiver<String>,
    _tasks: JoinSet<()>,
}

impl Pod {
    async fn answering(answer: &str) -> Self {
        let answer: Arc<str> = answer.into();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound address");
        let (tell, heard) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let (tell, answer) = (tell.clone(), answer.clone());
                tokio::spawn(async move {
                    let (mut got, mut some) = (Vec::new(), [0; 4096]);
                    while !is_whole(&got) {
                        match stream.read(&mut some).await {
                            Ok(n @ 1..) => got.extend(&some[..n]),
                            _ => break,
                        }
                    }
                    let _ = tell.send(String::from_utf8_lossy(&got).into_owned());
                    let _ = stream.write_all(answer.as_bytes()).await;
                    let _ = stream.flush().await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self { address, heard, _tasks: tasks }
    }

    async fn heard(&mut self) -> String {
        tokio::time::timeout(PATIENCE, self.heard.recv()).await.expect("in time").expect("a request")
    }

    fn heard_more(&mut self) -> Option<String> {
        self.heard.try_recv().ok()
    }
}

/// Is the request there with all of its body?
fn is_whole(got: &[u8]) -> bool {
    let text = String::from_utf8_lossy(got).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    if head.contains("transfer-encoding") {
        return body.ends_with("0\r\n\r\n");
    }
    let length = head.lines().find_map(|it| it.strip_prefix("content-length: ")).and_then(|it| it.parse().ok());
    body.len() >= length.unwrap_or(0)
}

/// A server that thinks that the Pod `web` is at 10.0.0.7.
async fn before(pod: &Pod) -> HttpsServer {
    let mut config = server::config();
    let client = KubeletClient::new(&config.pki).expect("a client of kubelets").detoured(pod.address);
    config.kubelet_dial = Some(client);
    let running = serving(Config { ..config }).await;
    let account = json!({ "metadata": { "name": "default" } });
    let spec = json!({ "containers": [{ "name": "a", "image": "i", "ports": [{ "containerPort": 8080 }] }] });
    let pod = json!({ "metadata": { "name": "web" }, "spec": spec });
    let status = json!({ "status": { "podIP": "10.0.0.7", "podIPs": [{ "ip": "10.0.0.7" }] } });
    for (method, path, body) in [
        ("POST", "/api/v1/namespaces/default/serviceaccounts", account),
        ("POST", "/api/v1/namespaces/default/pods", pod),
        ("PATCH", "/api/v1/namespaces/default/pods/web/status", status),
    ] {
        let mut request = plain(method, path, body.to_string());
        let media_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        request.headers_mut().insert("content-type", media_type.parse().expect("a media type"));
        let code = running.server.call(admin(), request).await.status();
        assert!(code.is_success(), "{path}: {code}");
    }
    running
}

/// Sends bytes over HTTP/1.1 and reads until the server hangs up.
async fn told(running: &HttpsServer, sent: &str) -> String {
    let mut stream = running.connect(b"http/1.1").await;
    stream.write_all(sent.as_bytes()).await.expect("the server reads");
    stream.flush().await.expect("the server reads");
    let mut got = Vec::new();
    // Broken off is ended, too.
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut got)).await.expect("in time");
    String::from_utf8_lossy(&got).into_owned()
}

#[tokio::test]
async fn a_request_goes_on_written_anew() {
    const CHUNKS: &str = "5\r\nhello\r\n0\r\nx-trailer: y\r\n\r\n";
    const FIVE: &str = "Content-Length: 5\r\n";
    let mut pod = Pod::answering(OK).await;
    let running = before(&pod).await;
    let hops = "Keep-Alive: 5\r\nTE: trailers\r\nProxy-Authorization: x\r\nX-Mine: 1\r\nX-Other: 2\r\n\
                Connection: close, x-mine\r\n";
    let claims = "X-Remote-User: root\r\nAuthorization: Bearer s3cret\r\nX-Forwarded-For: 1.1.1.1\r\n";
    let chunks = "Transfer-Encoding: chunked\r\nTrailer: x-trailer\r\n";
    let both = "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n";
    let expects = "Expect: 100-continue\r\nContent-Length: 5\r\n";
    let h2c = "HTTP2-Settings: AAMAAABkAAQAAP__\r\nConnection: HTTP2-Settings, close\r\nUpgrade: h2c\r\n";
    let plain = &["host: localhost", "x-forwarded-for: 127.0.0.1"][..];
    let with = |more: &'static str| [&[more][..], plain].concat();
    let chunked = with("transfer-encoding: chunked");
    for (line, more, body, expected, headers, sent) in [
        ("GET /x?y=z", "", "", "GET /x?y=z", plain.to_vec(), ""),
        ("GET /x", hops, "", "GET /x", with("x-other: 2"), ""),
        ("POST /x", FIVE, "hello", "POST /x", with("content-length: 5"), "hello"),
        ("GET /x", FIVE, "hello", "GET /x", with("content-length: 5"), "hello"),
        ("POST /x", chunks, CHUNKS, "POST /x", chunked.clone(), "5\r\nhello\r\n0\r\n\r\n"),
        ("POST /x", both, CHUNKS, "POST /x", chunked, "5\r\nhello\r\n0\r\n\r\n"),
        ("POST /x", expects, "hello", "POST /x", with("content-length: 5"), "hello"),
        ("GET /x", claims, "", "GET /x", vec!["host: localhost", "x-forwarded-for: 1.1.1.1, 127.0.0.1"], ""),
        ("GET /x", h2c, "", "GET /x", plain.to_vec(), ""),
        ("GET /a/../../b/./c", "", "", "GET /b/c", plain.to_vec(), ""),
        ("GET /../../../../secrets", "", "", "GET /secrets", plain.to_vec(), ""),
        ("GET //elsewhere//x", "", "", "GET /elsewhere/x", plain.to_vec(), ""),
        ("GET /a%2fb%2e%2e%00?c=%0d%0aX:%20y", "", "", "GET /a%2fb%2e%2e%00?c=%0d%0aX:%20y", plain.to_vec(), ""),
    ] {
        let (method, path) = line.split_once(' ').expect("two words");
        let close = if more.contains("Connection") { "" } else { "Connection: close\r\n" };
        let asked = format!("{method} {PROXY}{path} HTTP/1.1\r\nHost: localhost\r\n{more}{close}\r\n{body}");
        assert!(told(&running, &asked).await.ends_with("\r\n\r\nok"), "{line} {more}");
        let heard = pod.heard().await;
        let (head, heard_body) = heard.split_once("\r\n\r\n").expect("a head");
        let mut lines: Vec<&str> = head.lines().filter(|it| !it.starts_with("x-forwarded-uri: ")).collect();
        assert_eq!(lines.remove(0), format!("{expected} HTTP/1.1"), "{line} {more}");
        lines.sort_unstable();
        let mut headers = headers.clone();
        headers.sort_unstable();
        assert_eq!((lines, heard_body), (headers, sent), "{line} {more}");
        assert_eq!(pod.heard_more(), None, "{line} {more}");
    }
    running.end().await;
}

#[tokio::test]
async fn a_stream_goes_on_as_one_request() {
    let mut pod = Pod::answering(OK).await;
    let running = before(&pod).await;
    for (more, body, expected) in [
        (&[][..], "", &["host: localhost"][..]),
        // The address counts.
        (&[("host", "elsewhere")], "", &["host: localhost"]),
        (&[("te", "trailers")], "", &["host: localhost"]),
        (&[("content-length", "5")], "hello", &["content-length: 5", "host: localhost"]),
        (&[], "hello", &["host: localhost", "transfer-encoding: chunked"]),
        (&[("cookie", "a=1"), ("cookie", "b=2")], "", &["cookie: a=1", "cookie: b=2", "host: localhost"]),
    ] {
        let fields = [(":method", "POST"), (":scheme", "https"), (":authority", "localhost"), (":path", X)];
        let mut frames = Frames::open(&running).await;
        frames.send(&headers(1, body.is_empty(), &[&fields[..], more].concat())).await;
        if !body.is_empty() {
            frames.send(&frame(frames::DATA, 0, 1, body.as_bytes())).await;
            frames.send(&headers(1, true, &[("x-trailer", "y"), ("x-remote-user", "root")])).await;
        }
        let came = tokio::time::timeout(PATIENCE, frames.hear(1)).await.expect("in time");
        assert_eq!(came, Heard::Answer(200, "ok".into()), "{more:?}");
        let heard = pod.heard().await;
        let (head, heard_body) = heard.split_once("\r\n\r\n").expect("a head");
        let mut lines: Vec<&str> = head.lines().filter(|it| !it.starts_with("x-forwarded-")).collect();
        assert_eq!(lines.remove(0), "POST /x HTTP/1.1");
        lines.sort_unstable();
        assert_eq!(lines, expected, "{more:?}");
        let is_chunked = expected.contains(&"transfer-encoding: chunked");
        assert_eq!(heard_body, if is_chunked { "5\r\nhello\r\n0\r\n\r\n" } else { body }, "{more:?}");
    }
    running.end().await;
}

/// What a Pod says after its answer, or in the place of one, is never taken for the answer to another request.
#[tokio::test]
async fn an_answer_is_one_answer() {
    const SWITCHING: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    const EVIL: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    let status = |line: &str, length: &str, body: &str| format!("HTTP/1.1 {line}\r\n{length}\r\n\r\n{body}");
    let two = "Content-Length: 2";
    for (what, answer, asked, codes) in [
        ("an answer", OK.to_owned(), "", &[200, 200][..]),
        ("it switches unasked", format!("{SWITCHING}{EVIL}"), "", &[503, 200]),
        ("a body longer than it says", status("200 OK", two, &format!("ok{EVIL}")), "", &[200, 200]),
        ("a body shorter than it says", status("200 OK", "Content-Length: 20", "ok"), "", &[200]),
        ("two lengths", status("200 OK", "Content-Length: 2\r\nContent-Length: 4", "ok"), "", &[503, 200]),
        (
            "length and chunks",
            status("200 OK", "Content-Length: 9\r\nTransfer-Encoding: chunked", &format!("2\r\nok\r\n0\r\n\r\n{EVIL}")),
            "",
            &[200, 200],
        ),
        ("no content, and content", status("204 No Content", "Content-Length: 4", "evil"), "", &[204, 200]),
        ("it informs first", format!("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n{OK}"), "", &[200, 200]),
        ("no HTTP", "SSH-2.0-evil\r\n".to_owned(), "", &[503, 200]),
        ("nothing", String::new(), "", &[503, 200]),
        ("it answers instead of switching", OK.to_owned(), UPGRADE, &[500, 200]),
        ("it refuses to switch", status("403 Forbidden", two, &format!("no{EVIL}")), UPGRADE, &[403, 200]),
    ] {
        let mut pod = Pod::answering(&answer).await;
        let running = before(&pod).await;
        let next = "GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let said = told(&running, &format!("GET {X} HTTP/1.1\r\nHost: localhost\r\n{asked}\r\n{next}")).await;
        pod.heard().await;
        let found: Vec<u16> = said.split("HTTP/1.1 ").skip(1).map(|it| it[..3].parse().expect("a code")).collect();
        assert_eq!(found, codes, "{what}: {said}");
        assert!(!said.contains("evil"), "{what}: {said}");
        assert_eq!(said.contains("gitVersion"), codes.len() == 2, "{what}: {said}");
        running.end().await;
    }
}

#[tokio::test]
async fn pages_of_a_pod_open_nothing_to_others() {
    const ANSWER: &str = "HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nAccess-Control-Allow-Credentials: true\r\n\
                          Access-Control-Allow-Methods: DELETE\r\nConnection: x-mine\r\nX-Mine: 1\r\nX-Other: 2\r\n\
                          Content-Length: 2\r\n\r\nok";
    let pod = Pod::answering(ANSWER).await;
    let running = before(&pod).await;
    let asked = format!("GET {X} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let said = told(&running, &asked).await.to_lowercase();
    assert!(said.contains("x-other: 2") && !said.contains("access-control") && !said.contains("x-mine"), "{said}");
    running.end().await;
}

/// A kubelet sees only that the API server asks. So whoever may read through it gets no shell by way of a GET.
#[tokio::test]
async fn who_may_read_of_a_node_may_not_act_there() {
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    let pod = Pod::answering(OK).await;
    let running = before(&pod).await;
    let addresses = json!([{ "type": "InternalIP", "address": "10.0.0.8" }]);
    let role = |verbs: &[&str]| {
        let rules = json!([{ "apiGroups": [""], "resources": ["nodes/proxy"], "verbs": verbs }]);
        json!({ "metadata": { "name": "reader" }, "rules": rules })
    };
    let subject = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane" });
    let reference = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader" });
    let binding = json!({ "metadata": { "name": "reader" }, "roleRef": reference, "subjects": [subject] });
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" }, "status": { "addresses": addresses } });
    let send = async |method: &str, path: &str, body: serde_json::Value| {
        let mut request = plain(method, path, body.to_string());
        request.headers_mut().insert("content-type", "application/json".parse().expect("a media type"));
        let code = running.server.call(admin(), request).await.status();
        assert!(code.is_success(), "{path}: {code}");
    };
    send("POST", "/api/v1/nodes", json!({ "metadata": { "name": "n1" } })).await;
    send("PUT", "/api/v1/nodes/n1/status", node).await;
    send("POST", &format!("{RBAC}/clusterroles"), role(&["get"])).await;
    send("POST", &format!("{RBAC}/clusterrolebindings"), binding).await;
    let asked = async |upgrade: &str| {
        let mut stream = running.connect_as_stranger(b"http/1.1").await;
        let head = format!(
            "GET /api/v1/nodes/n1/proxy/exec/default/web/a?command=sh&output=1 HTTP/1.1\r\nHost: localhost\r\n\
             Authorization: Bearer s3cret\r\n{upgrade}\r\nGET /version HTTP/1.1\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.expect("the server reads");
        let mut got = Vec::new();
        let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut got)).await.expect("in time");
        String::from_utf8_lossy(&got).into_owned()
    };
    // No kubelet listens there: whoever comes so far hears that.
    const SOCKET: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    const UNREACHED: &str = "error trying to reach service";
    assert!(asked("").await.contains(UNREACHED));
    let refused = asked(SOCKET).await;
    assert!(refused.contains(r#"User \"jane\" cannot create resource \"nodes/proxy\""#), "{refused}");
    send("PUT", &format!("{RBAC}/clusterroles/reader"), role(&["get", "create"])).await;
    assert!(asked(SOCKET).await.contains(UNREACHED));
    running.end().await;
}
