//! Asks a server what it serves, beside all requests: discovery, in the newer form or the older, and OpenAPI, of which what has not
//! changed is not read again.

use std::{sync::Arc, time::Duration};

use corten_openapi::{AggregatedVersion, Description, Resources, Swagger};
use corten_webhook::Document;
use http::{StatusCode, header};
use serde_json::Value;

use crate::{
    backend::{Backend, DocumentTags},
    fetch::{DocumentRequest, fetch},
};

const DEADLINE: Duration = Duration::from_secs(10);
const DISCOVERY_BYTES_MAX: usize = 2 * 1024 * 1024;
const DOCUMENT_BYTES_MAX: usize = 8 * 1024 * 1024;
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;q=0.9";
const JSON: &str = "application/json";

/// Takes up what the server says now. What it does not say any more, or not in time, stays as it was.
pub(crate) async fn hear(backend: &Backend) {
    let before = backend.heard.load_full();
    let mut now = (*before).clone();
    let mut known = backend.known.lock().clone();
    match resources(backend).await {
        Ok(resources) => {
            now.is_current = true;
            if resources != *now.resources {
                now.resources = Arc::new(resources);
            }
        }
        Err(error) => {
            now.is_current = false;
            tracing::warn!(api_service = backend.spec.name, error, "another API server's discovery cannot be read");
        }
    }
    let has_v3 = read_v3(backend, &mut now, &mut known).await.unwrap_or_else(|error| {
        tracing::debug!(api_service = backend.spec.name, error, "another API server's OpenAPI v3 cannot be read");
        true
    });
    if let Err(error) = read_v2(backend, &mut now, &mut known).await {
        tracing::debug!(api_service = backend.spec.name, error, "another API server's OpenAPI v2 cannot be read");
    }
    if !has_v3 {
        convert(&mut now, &mut known);
    }
    *backend.known.lock() = known;
    if !is_same(&before, &now) {
        backend.heard.store(Arc::new(now));
    }
}

fn is_same(a: &AggregatedVersion, b: &AggregatedVersion) -> bool {
    let same_v3 = match (&a.v3, &b.v3) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (a, b) => a.is_none() && b.is_none(),
    };
    let same_v2 = match (&a.v2, &b.v2) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (a, b) => a.is_none() && b.is_none(),
    };
    same_v3 && same_v2 && a.is_current == b.is_current && Arc::ptr_eq(&a.resources, &b.resources)
}

async fn resources(backend: &Backend) -> Result<Resources, String> {
    let (group, version) = (&*backend.spec.group, &*backend.spec.version);
    let read = get(backend, "/apis", DISCOVERY, "", DISCOVERY_BYTES_MAX).await?;
    let media_type = read.headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    if read.code.is_success() && media_type.contains("as=APIGroupDiscoveryList") {
        let found = Resources::of_discovery(&read.body, group, version).map_err(|it| it.to_string())?;
        return found.ok_or_else(|| format!("it does not list {group}/{version}"));
    }
    let read = get(backend, &backend.spec.path(), JSON, "", DISCOVERY_BYTES_MAX).await?;
    if !read.code.is_success() {
        return Err(format!("{} answers {}", backend.spec.path(), read.code.as_u16()));
    }
    Resources::of_list(&read.body).map_err(|it| it.to_string())
}

/// Says in v3 what the server says in v2 (`isLegacyAPIService`).
fn convert(now: &mut AggregatedVersion, known: &mut DocumentTags) {
    let Some(v2) = &now.v2 else { return };
    if now.v3.is_none() || known.made_of.as_ref().is_none_or(|it| !Arc::ptr_eq(it, v2)) {
        now.v3 = Some(Arc::new(Description::of_swagger(v2)));
        known.made_of = Some(v2.clone());
        known.v3_url.clear();
    }
}

/// False where the server has none at all.
async fn read_v3(backend: &Backend, now: &mut AggregatedVersion, known: &mut DocumentTags) -> Result<bool, String> {
    let index = get(backend, "/openapi/v3", JSON, "", DISCOVERY_BYTES_MAX).await?;
    if index.code == StatusCode::NOT_FOUND {
        return Ok(false);
    }
    if !index.code.is_success() {
        return Err(format!("/openapi/v3 answers {}", index.code.as_u16()));
    }
    let index = corten_meta::depth::read_answer(&index.body).map_err(|it| it.to_string())?.value;
    let url = match &index["paths"][&*now.path()]["serverRelativeURL"] {
        Value::String(url) if url.starts_with('/') => url.clone(),
        _ => return Err(format!("/openapi/v3 does not list {}", now.path())),
    };
    if now.v3.is_some() && url == known.v3_url && url.contains("hash=") {
        return Ok(true);
    }
    let read = get(backend, &url, JSON, "", DOCUMENT_BYTES_MAX).await?;
    if !read.code.is_success() {
        return Err(format!("{url} answers {}", read.code.as_u16()));
    }
    now.v3 = Some(Arc::new(Description::of(&read.body)?));
    known.v3_url = url;
    known.made_of = None;
    Ok(true)
}

async fn read_v2(backend: &Backend, now: &mut AggregatedVersion, known: &mut DocumentTags) -> Result<(), String> {
    let tag = if now.v2.is_some() { known.v2_tag.clone() } else { String::new() };
    let read = get(backend, "/openapi/v2", JSON, &tag, DOCUMENT_BYTES_MAX).await?;
    if read.code == StatusCode::NOT_MODIFIED {
        return Ok(());
    }
    if !read.code.is_success() {
        return Err(format!("/openapi/v2 answers {}", read.code.as_u16()));
    }
    now.v2 = Some(Arc::new(Swagger::of(&read.body, &format!("{}/", backend.spec.path()))?));
    let tag = read.headers.get(header::ETAG).and_then(|it| it.to_str().ok());
    known.v2_tag = tag.unwrap_or_default().to_owned();
    Ok(())
}

async fn get(
    backend: &Backend,
    path: &str,
    accept: &'static str,
    tag: &str,
    bytes_max: usize,
) -> Result<Document, String> {
    fetch(backend, &DocumentRequest { path, accept, tag, deadline: DEADLINE, bytes_max }).await
}
