//! A KMS plugin for tests: its keys are made of their names, and it fails in the ways that a file tells it to.
//!
//! In its folder: `kms.sock`, where it listens; `key`, the name of the key it encrypts with; `fault`, one of [`FAULTS`].

use std::{
    collections::BTreeMap,
    convert::Infallible,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use aws_lc_rs::digest;
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::stream;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http2,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::{net::UnixListener, task::JoinSet};

use super::service::{
    DECRYPT, DecryptRequest, DecryptResponse, ENCRYPT, EncryptRequest, EncryptResponse, STATUS, StatusResponse,
};
use crate::local::Gcm;

/// What goes wrong: it never answers; it answers with an error; it says that it is not well; it encrypts with another key than it
/// says; it decrypts to something else; it answers a megabyte.
pub const FAULTS: [&str; 6] = ["hang", "error", "sick", "lie", "forget", "flood"];

pub struct Plugin {
    folder: PathBuf,
    n_decrypted: AtomicUsize,
}

impl Plugin {
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), n_decrypted: AtomicUsize::new(0) }
    }

    /// How often it was asked to decrypt.
    pub fn n_decrypted(&self) -> usize {
        self.n_decrypted.load(Relaxed)
    }

    /// Serves until it is dropped.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub async fn serve(self: Arc<Self>) -> io::Result<()> {
        let socket = self.folder.join("kms.sock");
        // Of one that was killed.
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket)?;
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await?;
            let plugin = self.clone();
            let service = service_fn(move |request| {
                let plugin = plugin.clone();
                async move { Ok::<_, Infallible>(plugin.answer(request).await) }
            });
            connections
                .spawn(http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service));
        }
    }

    fn says(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap_or_default().trim().to_owned()
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Answer> {
        let path = request.uri().path().to_owned();
        let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        // A byte that says whether it is compressed, and four of its length.
        let question = body.get(5..).unwrap_or_default();
        let (fault, key) = (self.says("fault"), self.says("key"));
        match &*fault {
            "hang" => std::future::pending().await,
            "error" => return answer(Bytes::new(), 13),
            "flood" => return answer(vec![b'x'; 1 << 20].into(), 0),
            _ => {}
        }
        let message = match &*path {
            STATUS => {
                let healthz = if fault == "sick" { "the key store is away" } else { "ok" };
                StatusResponse { version: "v2".into(), healthz: healthz.into(), key_id: key }.encode_to_vec()
            }
            ENCRYPT => {
                let question = EncryptRequest::decode(question).unwrap_or_default();
                let mut ciphertext = Vec::new();
                if cipher(&key).seal(&mut ciphertext, b"", &question.plaintext).is_err() {
                    return answer(Bytes::new(), 13);
                }
                let key_id = if fault == "lie" { "another".into() } else { key };
                let annotations = BTreeMap::from([("test.corten.dev".to_owned(), b"1".to_vec())]);
                EncryptResponse { ciphertext, key_id, annotations }.encode_to_vec()
            }
            DECRYPT => {
                self.n_decrypted.fetch_add(1, Relaxed);
                let question = DecryptRequest::decode(question).unwrap_or_default();
                let Ok(mut plaintext) = cipher(&question.key_id).open(b"", &question.ciphertext) else {
                    return answer(Bytes::new(), 3);
                };
                if fault == "forget" {
                    plaintext.reverse();
                }
                DecryptResponse { plaintext }.encode_to_vec()
            }
            _ => return answer(Bytes::new(), 12),
        };
        answer(message.into(), 0)
    }
}

fn cipher(key: &str) -> Gcm {
    let secret = digest::digest(&digest::SHA256, key.as_bytes());
    Gcm::new(secret.as_ref()).expect("a digest is as long as a key")
}

type Answer = StreamBody<stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>;

fn answer(message: Bytes, code: u8) -> Response<Answer> {
    let mut framed = BytesMut::new();
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).expect("it is made here, and small"));
    framed.put(message);
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", u16::from(code).into());
    let data = (code == 0).then(|| Ok(Frame::data(framed.freeze())));
    let frames: Vec<_> = data.into_iter().chain([Ok(Frame::trailers(trailers))]).collect();
    let mut response = Response::new(StreamBody::new(stream::iter(frames)));
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/grpc"));
    response
}
