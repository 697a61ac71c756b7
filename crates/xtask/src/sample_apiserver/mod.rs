//! A small API server with a storage of its own, for scripts: it serves Flunders of `wardle.example.com/v1` behind an APIService, as
//! upstream's sample-apiserver does.
//!
//! It takes a request for the user that the front proxy names, if the connection shows the front proxy's certificate; it asks the
//! cluster whether that user may; and it keeps objects in memory.

mod delegated;
mod documents;
mod storage;

use std::{fs, net::SocketAddr, path::PathBuf, sync::Arc};

use anyhow::{Context, Result};
use bytes::Bytes;
use corten_client::{Client, https::HttpsTransport, kubeconfig::Kubeconfig};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_rustls::TlsAcceptor;

use delegated::{Delegated, Question};
use storage::{Refusal, Storage};

type Body = UnsyncBoxBody<Bytes, std::convert::Infallible>;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where to serve
    #[arg(long)]
    listen: SocketAddr,
    /// Where the certificate that clients are to trust is put: DIR/ca.pem
    #[arg(long)]
    dir: PathBuf,
    /// The name of the Service in front of it, `NAME.NAMESPACE.svc`
    #[arg(long, default_value = "flunder.wardle.svc")]
    name: String,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(serve(args))
}

async fn serve(args: &Args) -> Result<()> {
    let target = Kubeconfig::load_default()?.target(None)?;
    let cluster = Client::new(Arc::new(HttpsTransport::new(&target)?));
    let delegated = Arc::new(Delegated::read(cluster).await?);
    let key = rcgen::KeyPair::generate()?;
    let certificate = rcgen::CertificateParams::new([args.name.clone()])?.self_signed(&key)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let tls = rustls::ServerConfig::builder_with_provider(delegated.provider())
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(delegated.clients()?)
        .with_single_cert(vec![certificate.der().clone()], key)?;
    let listener = TcpListener::bind(args.listen).await.with_context(|| format!("listening on {}", args.listen))?;
    fs::create_dir_all(&args.dir)?;
    fs::write(args.dir.join("ca.pem"), certificate.pem())?;
    let (tls, storage) = (TlsAcceptor::from(Arc::new(tls)), Arc::new(Storage::default()));
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        let (tls, storage, delegated) = (tls.clone(), storage.clone(), delegated.clone());
        connections.spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let is_proxy = stream.get_ref().1.peer_certificates().is_some_and(|it| delegated.is_front_proxy(it));
            let service = service_fn(move |request| {
                let (storage, delegated) = (storage.clone(), delegated.clone());
                async move { Ok::<_, std::convert::Infallible>(answer(request, is_proxy, &storage, &delegated).await) }
            });
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(
    request: Request<Incoming>,
    is_proxy: bool,
    storage: &Arc<Storage>,
    delegated: &Delegated,
) -> Response<Body> {
    let text = |name: &str| request.headers().get(name).and_then(|it| it.to_str().ok());
    let Some(user) = text("x-remote-user").filter(|_| is_proxy).map(str::to_owned) else {
        return status(401, "Unauthorized", "no front proxy says for whom it asks");
    };
    let groups = request.headers().get_all("x-remote-group").iter();
    let groups: Vec<String> = groups.filter_map(|it| it.to_str().ok()).map(str::to_owned).collect();
    let path = request.uri().path().to_owned();
    if let Some(document) = documents::of(&path) {
        return object(StatusCode::OK, &document);
    }
    let Some(question) = Question::of(request.method(), &path, request.uri().query().unwrap_or_default()) else {
        return status(404, "NotFound", "the server could not find the requested resource");
    };
    match delegated.may(&user, &groups, &question).await {
        Ok(true) => {}
        Ok(false) => return status(403, "Forbidden", &format!("{user} may not {} flunders", question.verb)),
        Err(error) => return status(500, "InternalError", &format!("{error:#}")),
    }
    let method = request.method().clone();
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let done = match (question.verb, method) {
        ("watch", _) => return watched(storage, &question),
        ("list", _) => Ok(storage.list(&question.namespace)),
        ("get", _) => storage.get(&question.namespace, &question.name),
        ("create", Method::POST) => serde_json::from_slice(&body)
            .map_err(|it| Refusal(400, "BadRequest", it.to_string()))
            .and_then(|it| storage.create(&question.namespace, it)),
        ("update", _) => serde_json::from_slice(&body)
            .map_err(|it| Refusal(400, "BadRequest", it.to_string()))
            .and_then(|it| storage.update(&question.namespace, &question.name, it)),
        ("delete", _) => storage.delete(&question.namespace, &question.name),
        _ => Err(Refusal(405, "MethodNotAllowed", "it does not do that".into())),
    };
    let code = if question.verb == "create" { StatusCode::CREATED } else { StatusCode::OK };
    match done {
        Ok(value) => object(code, &value),
        Err(Refusal(code, reason, message)) => status(code, reason, &message),
    }
}

/// Every change from the asked revision on, a line each, as long as the client reads.
fn watched(storage: &Arc<Storage>, question: &Question) -> Response<Body> {
    let (storage, namespace, after) = (storage.clone(), question.namespace.clone(), question.after);
    let events = futures_util::stream::unfold((storage, namespace, after), |(storage, namespace, after)| async move {
        let (revision, event) = storage.next(&namespace, after).await;
        let line = Bytes::from(format!("{event}\n"));
        Some((Ok(Frame::data(line)), (storage, namespace, revision)))
    });
    respond(StatusCode::OK, StreamBody::new(events).boxed_unsync())
}

fn object(code: StatusCode, value: &Value) -> Response<Body> {
    respond(code, Full::from(value.to_string()).boxed_unsync())
}

fn respond(code: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let media_type = hyper::header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, media_type);
    response
}

fn status(code: u16, reason: &str, message: &str) -> Response<Body> {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let value = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": reason,
                        "message": message, "code": code.as_u16() });
    object(code, &value)
}
