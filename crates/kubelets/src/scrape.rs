//! A GET of one path of a kubelet, read whole.

use bytes::Bytes;
use corten_cacher::watch_cache::Caches;
use corten_meta::Status;
use corten_stream::Dialed;
use http::Method;
use http_body_util::{BodyExt, Limited};

use crate::{KubeletClient, Node, complaint};

/// Of a hundred Pods it is some 100 KiB.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// # Errors
/// The node is not known, or does not answer as it should.
pub async fn scrape(kubelet: &KubeletClient, caches: &Caches, node: &str, path: &str) -> Result<Bytes, Status> {
    let node = Node::find(caches, node)?;
    let failed = |it: String| Status::internal(format!("Get \"https://{}{path}\": {it}", node.authority()));
    match kubelet.dial(&node, &Method::GET, path, None).await.map_err(|it| failed(it.to_string()))? {
        Dialed::Answered(response) if response.status().is_success() => {
            let body = Limited::new(response.into_body(), BODY_BYTES_MAX).collect().await;
            Ok(body.map_err(|it| failed(it.to_string()))?.to_bytes())
        }
        Dialed::Answered(response) => Err(complaint(response).await),
        Dialed::Switched(..) => Err(failed("the kubelet left HTTP without being asked to".into())),
    }
}

pub fn no_way() -> Status {
    Status::unavailable("this server was started without a way to reach kubelets")
}
