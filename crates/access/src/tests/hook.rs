//! A webhook over TLS that answers as it is told, and counts what it is asked.

use std::{path::PathBuf, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use corten_pki::Authority;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// Head of the answer and its body; `None`: it hangs.
pub(super) type WebhookAnswer = Option<(&'static str, String)>;
type Answering = Box<dyn FnMut(&Value) -> WebhookAnswer + Send>;

pub(super) struct Hook {
    pub(super) kubeconfig: PathBuf,
    answering: Arc<Mutex<Answering>>,
    asked: Arc<Mutex<Vec<Value>>>,
    _folder: tempfile::TempDir,
    _tasks: JoinSet<()>,
}

impl Hook {
    pub(super) async fn start(answering: impl FnMut(&Value) -> WebhookAnswer + Send + 'static) -> Self {
        let authority = Authority::in_memory().expect("keys can be made");
        let credential = authority.issue_server("hook", &["localhost".into()]).expect("a certificate");
        let tls = authority.server_config(&credential.fixed().expect("a credential")).expect("a TLS server");
        let mut tls = (*tls).clone();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("a bound address").port();
        let folder = tempfile::tempdir().expect("a folder");
        let kubeconfig = folder.path().join("hook.kubeconfig");
        let ca = BASE64_STANDARD.encode(authority.ca_pem());
        super::write(
            &kubeconfig,
            &format!(
                "apiVersion: v1\nkind: Config\nclusters:\n- {{name: c, cluster: {{server: 'https://localhost:{port}/ask', certificate-authority-data: {ca}}}}}\nusers:\n- {{name: u, user: {{token: of-the-server}}}}\ncontexts:\n- {{name: x, context: {{cluster: c, user: u}}}}\ncurrent-context: x\n"
            ),
        );
        let asked = Arc::new(Mutex::new(Vec::new()));
        let answering: Arc<Mutex<Answering>> = Arc::new(Mutex::new(Box::new(answering)));
        let mut tasks = JoinSet::new();
        let (told, says) = (asked.clone(), answering.clone());
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                let (acceptor, told, says) = (acceptor.clone(), told.clone(), says.clone());
                connections.spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    while let Some(body) = request(&mut stream).await {
                        told.lock().push(body.clone());
                        let said = (says.lock())(&body);
                        let Some((head, text)) = said else { return std::future::pending().await };
                        let answer = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{text}", text.len());
                        if stream.write_all(answer.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { kubeconfig, answering, asked, _folder: folder, _tasks: tasks }
    }

    pub(super) fn says(&self, answering: impl FnMut(&Value) -> WebhookAnswer + Send + 'static) {
        *self.answering.lock() = Box::new(answering);
    }

    pub(super) fn n_asked(&self) -> usize {
        self.asked.lock().len()
    }

    pub(super) fn last(&self) -> Value {
        self.asked.lock().last().cloned().unwrap_or_default()
    }
}

async fn request(stream: &mut TlsStream<TcpStream>) -> Option<Value> {
    let (mut got, mut some) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(at) = got.windows(4).position(|it| it == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&got[..at]).to_lowercase();
            assert!(head.contains("authorization: bearer of-the-server"), "{head}");
            let length =
                head.lines().find_map(|it| it.strip_prefix("content-length: "))?.trim().parse::<usize>().ok()?;
            if got.len() >= at + 4 + length {
                return serde_json::from_slice(&got[at + 4..at + 4 + length]).ok();
            }
        }
        match stream.read(&mut some).await {
            Ok(n @ 1..) => got.extend(&some[..n]),
            _ => return None,
        }
    }
}

/// An answer of success whose `status` is this.
pub(super) fn status(status: &Value) -> WebhookAnswer {
    Some(("200 OK", serde_json::json!({ "status": status }).to_string()))
}
