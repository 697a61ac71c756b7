//! Extenders over real sockets: what they are sent, and what their answers may do.

use std::time::Duration;

use corten_scheduler::ExtenderTls;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::*;
use crate::fake::FakeApi;

/// Answers each request by its path and body, until it is dropped.
struct Server {
    url: String,
    _tasks: JoinSet<()>,
}

/// What it answers, if anything: whole, with its status line.
type Answers = fn(&str, &Value) -> Option<String>;

impl Server {
    async fn new(answers: Answers) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port is free");
        let url = format!("http://{}/sched/", listener.local_addr().expect("it is bound"));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(answered(stream, answers));
            }
        });
        Self { url, _tasks: tasks }
    }

    fn extender(&self) -> Extender {
        let verb = |it: &str| it.to_owned();
        Extender {
            url_prefix: self.url.clone(),
            filter_verb: verb("filter"),
            prioritize_verb: verb("prioritize"),
            preempt_verb: verb("preempt"),
            bind_verb: verb("bind"),
            weight: 2,
            timeout: Duration::from_secs(30),
            node_cache_capable: true,
            ..Extender::default()
        }
    }
}

async fn answered(mut stream: TcpStream, answers: Answers) {
    let mut request = Vec::new();
    let (path, body) = loop {
        let mut part = [0; 4096];
        match stream.read(&mut part).await {
            Ok(n) if n > 0 => request.extend_from_slice(&part[..n]),
            _ => return,
        }
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        if let Ok(body) = serde_json::from_str(body) {
            break (head.split(' ').nth(1).unwrap_or_default().to_owned(), body);
        }
    };
    match answers(&path, &body) {
        Some(answer) => {
            let _ = stream.write_all(answer.as_bytes()).await;
        }
        None => std::future::pending().await,
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it is what a server answers, if anything")]
fn ok(body: &Value) -> Option<String> {
    let body = body.to_string();
    Some(format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
}

fn api() -> Arc<FakeApi> {
    let api = FakeApi::new();
    for name in ["n1", "n2", "n3"] {
        api.put(&format!("/api/v1/nodes/{name}"), json!({ "metadata": { "name": name, "labels": { "of": name } } }));
    }
    let pod = json!({ "metadata": { "name": "a", "namespace": "default", "uid": "u" }, "spec": { "schedulerName": "default-scheduler" } });
    api.put("/api/v1/namespaces/default/pods/a", pod);
    api
}

async fn asked(extenders: &[Extender], question: Question) -> Result<Advice, ExtenderFailure> {
    let pod = Key::new("default", "a");
    let uid = api().object("/api/v1/namespaces/default/pods/a").expect("it is there")["metadata"]["uid"].clone();
    let consultation = Consultation { pod, uid: uid.as_str().unwrap_or_default().into(), id: 7, question };
    let client = api().client();
    match Arc::new(Extenders::new(extenders, &extenders_over_network())).consult(client, consultation).await {
        Event::Advised { id: 7, answer, .. } => answer,
        other => panic!("{other:?}"),
    }
}

async fn about_nodes(extenders: &[Extender]) -> Result<NodeAdvice, String> {
    let all: Vec<usize> = (0..extenders.len()).collect();
    let nodes = ["n1", "n2", "n3"].map(str::to_owned).to_vec();
    match asked(extenders, Question::Nodes { nodes, filters: all.clone(), scorers: all }).await {
        Ok(Advice::Nodes(advice)) => Ok(advice),
        Ok(other) => panic!("{other:?}"),
        Err(failure) => Err(failure.message),
    }
}

#[tokio::test]
async fn names_are_sent_and_answers_are_read_as_go_reads_them() {
    let server = Server::new(|path, body| {
        assert_eq!(body["Pod"]["metadata"]["name"], "a");
        match path {
            "/sched/filter" => {
                assert_eq!((&body["NodeNames"], &body["Nodes"]), (&json!(["n1", "n2", "n3"]), &Value::Null));
                // Nobody asked about one of them, and one is refused and let through at once.
                ok(&json!({ "nodenames": ["n1", "n3", "n2", "n9"], "failedNodes": { "n2": "too old" },
                            "failedAndUnresolvableNodes": { "n2": "no gpu" } }))
            }
            "/sched/prioritize" => {
                assert_eq!(body["NodeNames"], json!(["n1", "n3"]), "those that are left");
                ok(&json!([{ "host": "n1", "score": 3 }, { "Host": "n3", "Score": i64::MAX }, { "Host": "n9", "Score": 1 }]))
            }
            other => panic!("{other}"),
        }
    })
    .await;
    let advice = about_nodes(&[server.extender()]).await.expect("it answers");
    assert_eq!(advice.nodes, ["n1", "n3"]);
    assert_eq!(advice.refused, BTreeMap::from([("n2".into(), NodeRefusal { extender: 0, reason: "no gpu".into() })]));
    assert_eq!(advice.scores, BTreeMap::from([("n1".into(), 6), ("n3".into(), 2 * SCORE_MAX)]));
}

#[tokio::test]
async fn who_does_not_know_the_nodes_is_sent_them_whole() {
    let server = Server::new(|path, body| {
        assert_eq!((path, &body["NodeNames"]), ("/sched/filter", &Value::Null));
        let items = body["Nodes"]["items"].as_array().expect("a list");
        let kept: Vec<&Value> = items.iter().filter(|it| it["metadata"]["labels"]["of"] != "n2").collect();
        ok(&json!({ "Nodes": { "items": kept } }))
    })
    .await;
    let extender = Extender { node_cache_capable: false, prioritize_verb: String::new(), ..server.extender() };
    let Ok(Advice::Nodes(advice)) = asked(
        &[extender],
        Question::Nodes { nodes: vec!["n2".into(), "n3".into()], filters: vec![0], scorers: vec![] },
    )
    .await
    else {
        panic!("it answers")
    };
    assert_eq!(advice.nodes, ["n3"]);
}

#[tokio::test]
async fn whatever_one_does_costs_its_timeout_and_no_more() {
    let endless: Answers = |_, _| Some(format!("HTTP/1.1 200 OK\r\n\r\n\"{}", " ".repeat(4 << 20)));
    let cases: [(Answers, &str); 6] = [
        (|_, _| None, "no answer"),
        (endless, "longer than"),
        (|_, _| ok(&json!({ "Error": "the disk is full" })), "the disk is full"),
        (|_, _| Some("HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n".into()), "filter failed"),
        (|_, _| Some("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{".into()), "cannot be read"),
        (|_, _| ok(&json!("n1")), "it is no object"),
    ];
    for (answers, message) in cases {
        let server = Server::new(answers).await;
        let timeout = Duration::from_secs(if message == "no answer" { 1 } else { 30 });
        let extender = Extender { timeout, ..server.extender() };
        let failure = about_nodes(std::slice::from_ref(&extender)).await.expect_err(message);
        assert!(failure.contains(message), "{message}: {failure}");
        // One that may be ignored is; its scores are never missed.
        let ignorable = Extender { ignorable: true, ..extender };
        let advice = about_nodes(&[ignorable]).await.expect("it is ignored");
        assert_eq!((advice.nodes.len(), advice.scores.len()), (3, 0));
    }
}

#[tokio::test]
async fn victims_are_spared_and_pods_are_bound() {
    let server = Server::new(|path, body| match path {
        "/sched/preempt" => {
            assert_eq!(body["NodeNameToMetaVictims"]["n1"]["Pods"], json!([{ "UID": "x" }, { "UID": "y" }]));
            ok(&json!({ "NodeNameToMetaVictims": { "n1": { "Pods": [{ "UID": "y" }, { "UID": "z" }] }, "n9": { "Pods": [{ "UID": "y" }] } } }))
        }
        "/sched/bind" if body["Node"] == "n1" => {
            let of = ["PodName", "PodNamespace", "PodUID"].map(|it| body[it].as_str().expect("it is said").to_owned());
            assert_eq!(of, ["a", "default", "u"]);
            ok(&json!({}))
        }
        _ => ok(&json!({ "Error": "no" })),
    })
    .await;
    let victim = |uid: &str| (Key::new("default", uid), uid.to_owned());
    let candidate =
        |node: &str| NodeVictims { node: node.into(), victims: vec![victim("x"), victim("y")], n_violations: 0 };
    let question = Question::Victims { candidates: vec![candidate("n1"), candidate("n2")], extenders: vec![0] };
    let left = NodeVictims { victims: vec![victim("y")], ..candidate("n1") };
    assert_eq!(asked(&[server.extender()], question).await, Ok(Advice::Victims(vec![left])));

    let (api, pod) = (api(), Key::new("default", "a"));
    let extenders = Extenders::new(&[server.extender()], &extenders_over_network());
    let error = extenders.bind(&api.client(), 0, (&pod, "u"), "n2").await.expect_err("it is refused");
    assert!(error.to_string().ends_with(": no"), "{error}");
    let error = extenders.bind(&api.client(), 0, (&pod, "u"), "n1").await.expect_err("it lies");
    assert!(error.to_string().contains("it says that it bound the pod, which has no node"), "{error}");
    let bound =
        json!({ "metadata": { "name": "a", "namespace": "default", "uid": "u" }, "spec": { "nodeName": "n1" } });
    api.put("/api/v1/namespaces/default/pods/a", bound);
    assert_eq!(extenders.bind(&api.client(), 0, (&pod, "u"), "n1").await.ok(), Some(Binder::This));
}

#[test]
fn an_extender_that_cannot_be_asked_is_found_at_the_start() {
    let of = |url: &str, tls: ExtenderTls| Extender { url_prefix: url.into(), tls, ..Extender::default() };
    let insecure = ExtenderTls { insecure: true, ..ExtenderTls::default() };
    assert_eq!(check_extenders(&[of("http://x", ExtenderTls::default()), of("https://x", insecure)]), Ok(()));
    let why = check_extenders(&[of("https://x", ExtenderTls::default())]).expect_err("nobody can know it");
    assert!(why.contains("without a certificate authority"), "{why}");
}
