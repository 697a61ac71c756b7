//! How large a member's file may become. etcd 3.6 says so in its status; before, only its metrics do (`--quota-backend-bytes`),
//! which it serves over HTTP at the address of its clients unless `--listen-metrics-urls` names another.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use crate::tls::{Connector, dial_http};

const WAIT: Duration = Duration::from_secs(5);
/// All metrics of a member are about 100 KiB.
const ANSWER_BYTES_MAX: usize = 4 << 20;
const METRIC: &str = "etcd_server_quota_backend_bytes";

/// In bytes; None where the member does not tell.
pub(crate) async fn of_member(url: &str, connector: &Connector) -> Option<u64> {
    match timeout(WAIT, metrics(url, connector)).await {
        Ok(Ok(text)) => read(&text),
        Ok(Err(error)) => {
            tracing::debug!(url, error, "a member does not tell its metrics");
            None
        }
        Err(_) => None,
    }
}

async fn metrics(url: &str, connector: &Connector) -> Result<String, String> {
    let uri: http::Uri = url.parse().map_err(|it| format!("{it}"))?;
    let stream = dial_http(&uri, connector).await.map_err(|it| it.to_string())?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|it| it.to_string())?;
    let host = uri.authority().map_or_else(String::new, ToString::to_string);
    let request = Request::get("/metrics").header(header::HOST, host).body(Empty::<Bytes>::new());
    let answering = async {
        let response = sender.send_request(request.map_err(|it| it.to_string())?).await.map_err(|it| it.to_string())?;
        if !response.status().is_success() {
            return Err(response.status().to_string());
        }
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|it| it.to_string())?.to_bytes();
        Ok(String::from_utf8_lossy(&body).into_owned())
    };
    tokio::pin!(connection);
    tokio::select! {
        answer = answering => answer,
        ended = &mut connection => Err(format!("the connection ended: {ended:?}")),
    }
}

/// `etcd_server_quota_backend_bytes 2.147483648e+09`: Go writes what is large with an exponent.
fn read(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|it| it.strip_prefix(METRIC)?.strip_prefix(' '))?;
    let bytes: f64 = line.trim().parse().ok()?;
    // A quota is below 2^53, where every whole number has a float of its own; where there is none it is negative.
    format!("{bytes:.0}").parse().ok().filter(|it| *it > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quota_is_read_from_metrics() {
        for (text, expected) in [
            (
                "# TYPE etcd_server_quota_backend_bytes gauge\netcd_server_quota_backend_bytes 2.147483648e+09\n",
                Some(2 << 30),
            ),
            ("etcd_server_quota_backend_bytes 4.194304e+06", Some(4 << 20)),
            ("etcd_server_quota_backend_bytes -1\n", None),
            ("etcd_server_quota_backend_bytes_max 1\n", None),
            ("etcd_server_quota_backend_bytes many\n", None),
            ("", None),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
