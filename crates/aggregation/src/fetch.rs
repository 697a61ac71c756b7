//! Reads one document of a server, within a time and a size. No redirect is followed.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use corten_access::{Identity, request_header};
use corten_stream::{Dialed, dial};
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use http_body_util::{BodyExt, Empty};

use crate::backend::{Backend, PASSED_ON};

const AGENT: &str = concat!("corten/", env!("CARGO_PKG_VERSION"));

/// What to read.
pub(crate) struct Wanted<'a> {
    pub(crate) path: &'a str,
    pub(crate) accept: &'static str,
    /// The tag of what is known already; may be empty.
    pub(crate) tag: &'a str,
    /// From now to the last byte.
    pub(crate) deadline: Duration,
    pub(crate) bytes_max: usize,
}

pub(crate) struct Fetched {
    pub(crate) code: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// As upstream's aggregator asks: whatever the server's own roles say, it lets that user read.
fn aggregator() -> Identity {
    Identity::new("system:kube-aggregator", &[corten_access::MASTERS])
}

/// # Errors
/// There is no answer, or none of that size in that time.
pub(crate) async fn fetch(backend: &Backend, wanted: &Wanted<'_>) -> Result<Fetched, String> {
    let fetching = async {
        let request = Request::get(wanted.path)
            .header(header::HOST, backend.authority())
            .header(header::USER_AGENT, AGENT)
            .header(PASSED_ON, "true")
            .header(header::ACCEPT, wanted.accept);
        let mut request = request.body(Empty::<Bytes>::new()).map_err(|it| it.to_string())?;
        if let Ok(tag) = HeaderValue::from_str(wanted.tag)
            && !tag.is_empty()
        {
            request.headers_mut().insert(header::IF_NONE_MATCH, tag);
        }
        request_header::say(request.headers_mut(), &aggregator())?;
        let stream = backend.connected().await?;
        match dial(stream, request, wanted.deadline).await.map_err(|it| it.to_string())? {
            Dialed::Switched(..) => Err("it switches protocols without being asked to".to_owned()),
            Dialed::Answered(response) => {
                let (head, mut body) = response.into_parts();
                let mut whole = BytesMut::new();
                while let Some(frame) = body.frame().await {
                    let frame = frame.map_err(|it| format!("the answer broke off: {it}"))?;
                    let Ok(data) = frame.into_data() else { continue };
                    if whole.len() + data.len() > wanted.bytes_max {
                        return Err(format!("the answer is larger than {} bytes", wanted.bytes_max));
                    }
                    whole.extend_from_slice(&data);
                }
                Ok(Fetched { code: head.status, headers: head.headers, body: whole.freeze() })
            }
        }
    };
    let fetched = tokio::time::timeout(wanted.deadline, fetching).await;
    fetched.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()))
}
