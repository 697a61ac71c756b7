//! Requests and their answers: the verbs of the API as functions, on raw bytes or decoded.

mod discovery;
mod groups;
mod served;

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use corten_meta::{Key, Resource};
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio::time::Instant;

pub use discovery::{ServedGroup, ServedResource};

use crate::{
    Body, DeleteParams, Error, KeptAnswers, ListParams, PatchType, RequestTallies, Transport, TransportError, Watch,
    WatchParams,
    params::{Url, status_of},
    reach::Reach,
};

/// No answer may be larger: a list of everything in a large cluster still fits.
const ANSWER_BYTES_MAX: usize = 1 << 30;
const DEADLINE: Duration = Duration::from_secs(60);
/// Where no server answers, and an answer of before is there, one is waited for no longer.
const DEADLINE_CUT_OFF: Duration = Duration::from_secs(2);

/// One API server under one identity. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    transport: Arc<dyn Transport>,
    deadline: Duration,
    /// Of one answer.
    bytes_max: usize,
    kept: Option<KeptAnswers>,
    /// For whom single answers are kept.
    owner: Option<Arc<str>>,
    counts: Option<RequestTallies>,
    reach: Reach,
}

/// One page of objects, each as the bytes the server sent.
#[derive(Clone, Debug, Default)]
pub struct List {
    /// Without `kind` and `apiVersion` where the server leaves them out of list items.
    pub items: Vec<Bytes>,
    pub resource_version: String,
    /// Empty: this is the last page.
    pub continue_token: String,
}

impl Client {
    pub fn new(transport: Arc<dyn Transport>) -> Self {
        Self {
            transport,
            deadline: DEADLINE,
            bytes_max: ANSWER_BYTES_MAX,
            kept: None,
            owner: None,
            counts: None,
            reach: Reach::default(),
        }
    }

    /// Counts its requests there.
    #[must_use]
    pub fn with_request_tallies(mut self, counts: RequestTallies) -> Self {
        self.counts = Some(counts);
        self
    }

    /// How long one request may take; for a watch, how long until it begins.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// With a lower bound on what one answer holds, where it is another's than the cluster's own.
    #[must_use]
    pub fn with_answers_up_to(mut self, bytes: usize) -> Self {
        self.bytes_max = bytes;
        self
    }

    /// With a place where answers are kept for a start while no server gives any.
    #[must_use]
    pub fn with_kept(mut self, kept: KeptAnswers) -> Self {
        self.kept = Some(kept);
        self
    }

    /// Keeps the objects that are read, and tokens, for this owner: where no server answers they are what they were.
    #[must_use]
    pub fn for_owner(&self, owner: &str) -> Self {
        Self { owner: Some(owner.into()), ..self.clone() }
    }

    /// From now on answers are kept for this owner, until it is forgotten.
    pub fn begin_owner(&self, owner: &str) {
        if let Some(kept) = &self.kept {
            kept.begin_owner(owner);
        }
    }

    /// What is kept for an owner is not needed any more, nor what is still answered to it.
    pub fn forget_owner(&self, owner: &str) {
        if let Some(kept) = &self.kept {
            kept.forget_owner(owner);
        }
    }

    /// No server has answered for a while, and what was kept counts.
    pub fn is_cut_off(&self) -> bool {
        self.kept.as_ref().is_some_and(KeptAnswers::is_cut_off)
    }

    pub(crate) fn reach(&self) -> &Reach {
        &self.reach
    }

    pub(crate) fn kept(&self) -> Option<&KeptAnswers> {
        self.kept.as_ref()
    }

    // ---- any request ----

    /// Sends a request and gives the answer's body as a stream.
    ///
    /// # Errors
    /// Every answer outside 2xx is an [`Error::Status`].
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, Error> {
        let what = format!("{} {}", request.method(), request.uri().path());
        let method = request.method().clone();
        let begun = Instant::now();
        let answer = self.within(&what, self.transport.send(request)).await.and_then(|it| Ok(it?));
        self.reach.note(answer.is_ok());
        if let Some(counts) = &self.counts {
            let code = answer.as_ref().ok().map(Response::status);
            counts.answered(&method, self.transport.host().as_deref(), code);
        }
        if let Some(kept) = &self.kept {
            kept.note(begun, answer.as_ref().is_ok_and(|it| !it.status().is_server_error()));
        }
        let response = answer?;
        if response.status().is_success() {
            return Ok(response);
        }
        let code = response.status().as_u16();
        let body = self.collect(&what, response.into_body()).await?;
        Err(status_of(code, &body).into())
    }

    /// Sends a request and waits for the whole answer.
    ///
    /// # Errors
    /// Every answer outside 2xx is an [`Error::Status`].
    pub async fn request(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
        let Some(counts) = &self.counts else { return self.whole_answer(request).await };
        let (method, begun) = (request.method().clone(), Instant::now());
        let answer = self.whole_answer(request).await;
        counts.took(&method, self.transport.host().as_deref(), begun.elapsed());
        answer
    }

    /// `GET` of any path, for example `/version`.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub async fn get_path(&self, path: &str) -> Result<Bytes, Error> {
        self.call(Method::GET, path, "", Bytes::new()).await
    }

    /// As [`Client::get_path`], with a query.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub async fn get_path_with(&self, path: &str, query: &[(&str, String)]) -> Result<Bytes, Error> {
        let url = query.iter().fold(Url::new(path.to_owned()), |url, (name, value)| url.with(name, value));
        self.get_path(&url.finish()).await
    }

    // ---- one object ----

    /// # Errors
    /// As [`Client::request`], as for every verb below.
    pub async fn get(&self, resource: &Resource, key: &Key) -> Result<Bytes, Error> {
        let path = resource.path(key);
        self.or_kept(&path, |client| async move { client.get_path(&resource.path(key)).await }).await
    }

    /// # Errors
    /// As [`Client::get`], and [`Error::Decode`] where the object is not a `T`.
    pub async fn get_as<T: DeserializeOwned>(&self, resource: &Resource, key: &Key) -> Result<T, Error> {
        decode(&self.get(resource, key).await?)
    }

    /// Creates `object` in `namespace` (empty for a cluster-scoped kind) and gives back what was stored.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub async fn create(&self, resource: &Resource, namespace: &str, object: &impl Serialize) -> Result<Bytes, Error> {
        self.call(Method::POST, &resource.collection_path(namespace), JSON, encode(object)?).await
    }

    /// Posts to a subresource: `binding`, `eviction`.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub async fn create_subresource(
        &self,
        resource: &Resource,
        key: &Key,
        subresource: &str,
        object: &impl Serialize,
    ) -> Result<Bytes, Error> {
        self.call(Method::POST, &path(resource, key, subresource), JSON, encode(object)?).await
    }

    /// As [`Client::create_subresource`], of what is made of it alone (`token`). It is kept under `what`.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub async fn obtain(
        &self,
        resource: &Resource,
        (key, subresource): (&Key, &str),
        what: &str,
        object: &impl Serialize,
    ) -> Result<Bytes, Error> {
        let (path, body) = (path(resource, key, subresource), encode(object)?);
        let what = format!("{path} {what}");
        self.or_kept(&what, |client| async move { client.call(Method::POST, &path, JSON, body).await }).await
    }

    /// Replaces the whole object, or where `subresource` is not empty (`status`, `finalize`), that part of it.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub async fn replace(
        &self,
        resource: &Resource,
        key: &Key,
        subresource: &str,
        object: &impl Serialize,
    ) -> Result<Bytes, Error> {
        self.call(Method::PUT, &path(resource, key, subresource), JSON, encode(object)?).await
    }

    /// Patches the object, or where `subresource` is not empty, that part of it.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub async fn patch(
        &self,
        resource: &Resource,
        key: &Key,
        subresource: &str,
        patch_type: &PatchType,
        patch: &impl Serialize,
    ) -> Result<Bytes, Error> {
        let mut url = Url::new(path(resource, key, subresource));
        if let PatchType::Apply { manager, force } = patch_type {
            url = url.with("fieldManager", manager).with("force", if *force { "true" } else { "" });
        }
        self.call(Method::PATCH, &url.finish(), patch_type.content_type(), encode(patch)?).await
    }

    /// Gives back the object in its last state (it may live on until its finalizers are done), or a `Status`.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub async fn delete(&self, resource: &Resource, key: &Key, params: &DeleteParams) -> Result<Bytes, Error> {
        self.call(Method::DELETE, &resource.path(key), JSON, encode(&params.body())?).await
    }

    // ---- many objects ----

    /// One page of a list.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub async fn list(&self, resource: &Resource, params: &ListParams) -> Result<List, Error> {
        let url = params.url(resource.collection_path(&params.namespace));
        read_list(&self.get_path(&url).await?)
    }

    /// One page of a list, without what is in the objects: the head of each says who it is and what becomes of it.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub async fn list_metadata(&self, resource: &Resource, params: &ListParams) -> Result<List, Error> {
        let url = params.url(resource.collection_path(&params.namespace));
        let mut request = request(Method::GET, &url, "", Bytes::new())?;
        request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static(METADATA));
        read_list(&self.request(request).await?.into_body())
    }

    /// Every page of a list, decoded.
    ///
    /// # Errors
    /// As [`Client::list`], and [`Error::Decode`] where an item is not a `T`.
    pub async fn list_as<T: DeserializeOwned>(
        &self,
        resource: &Resource,
        params: &ListParams,
    ) -> Result<Vec<T>, Error> {
        let mut params = params.clone();
        let mut objects = Vec::new();
        loop {
            let list = self.list(resource, &params).await?;
            for item in &list.items {
                objects.push(decode(item)?);
            }
            if list.continue_token.is_empty() {
                return Ok(objects);
            }
            params.continue_token = list.continue_token;
        }
    }

    /// Deletes everything the list would answer.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub async fn delete_collection(
        &self,
        resource: &Resource,
        which: &ListParams,
        how: &DeleteParams,
    ) -> Result<Bytes, Error> {
        let url = which.url(resource.collection_path(&which.namespace));
        self.call(Method::DELETE, &url, JSON, encode(&how.body())?).await
    }

    /// Begins a watch.
    ///
    /// # Errors
    /// As [`Client::send`]; a revision that is gone may also come as the watch's first event.
    pub async fn watch(&self, resource: &Resource, params: &WatchParams) -> Result<Watch, Error> {
        let url = params.url(resource.collection_path(&params.namespace));
        let response = self.send(request(Method::GET, &url, "", Bytes::new())?).await?;
        Ok(Watch::new(response.into_body()))
    }

    /// What is served, by this server and by those behind it, a group an item (aggregated discovery).
    ///
    /// # Errors
    /// As [`Client::request`].
    pub async fn list_groups(&self) -> Result<List, Error> {
        let mut request = request(Method::GET, "/apis", "", Bytes::new())?;
        request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static(GROUPS));
        match self.request(request).await {
            Err(error) if error.status().is_some_and(|it| it.code == 406) => groups::one_by_one(self).await,
            answer => read_list(&answer?.into_body()),
        }
    }

    /// As [`Client::watch`], of what [`Client::list_metadata`] lists.
    ///
    /// # Errors
    /// As [`Client::watch`].
    pub async fn watch_metadata(&self, resource: &Resource, params: &WatchParams) -> Result<Watch, Error> {
        let url = params.url(resource.collection_path(&params.namespace));
        let mut request = request(Method::GET, &url, "", Bytes::new())?;
        request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static(METADATA_OF_ONE));
        Ok(Watch::new(self.send(request).await?.into_body()))
    }

    /// A path whose answer is a stream of events, as a watch's is.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn stream(&self, path: &str) -> Result<Watch, Error> {
        let response = self.send(request(Method::GET, path, "", Bytes::new())?).await?;
        Ok(Watch::new(response.into_body()))
    }

    // ---- below ----

    /// An answer, which is kept for the owner; or the one before it.
    async fn or_kept<F: Future<Output = Result<Bytes, Error>>>(
        &self,
        what: &str,
        ask: impl FnOnce(Self) -> F,
    ) -> Result<Bytes, Error> {
        let (Some(kept), Some(owner)) = (&self.kept, &self.owner) else { return ask(self.clone()).await };
        let is_impatient = kept.is_cut_off() && kept.has_answer(owner, what);
        let client = if is_impatient { self.clone().with_deadline(DEADLINE_CUT_OFF) } else { self.clone() };
        kept.answer(owner, what, ask(client).await)
    }

    async fn call(&self, method: Method, url: &str, content_type: &str, body: Bytes) -> Result<Bytes, Error> {
        Ok(self.request(request(method, url, content_type, body)?).await?.into_body())
    }

    async fn whole_answer(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
        let what = format!("{} {}", request.method(), request.uri().path());
        let (head, body) = self.send(request).await?.into_parts();
        Ok(Response::from_parts(head, self.collect(&what, body).await?))
    }

    async fn collect(&self, what: &str, body: Body) -> Result<Bytes, Error> {
        let whole = self.within(what, whole(body, self.bytes_max)).await?;
        Ok(whole.map_err(|reason| TransportError(format!("the answer to {what} broke off: {reason}")))?)
    }

    async fn within<T>(&self, what: &str, work: impl Future<Output = T>) -> Result<T, Error> {
        tokio::time::timeout(self.deadline, work)
            .await
            .map_err(|_| TransportError(format!("no answer to {what} within {:?}", self.deadline)).into())
    }
}

/// A whole body. One that comes in one piece, as in process, is not copied.
async fn whole(mut body: Body, bytes_max: usize) -> Result<Bytes, String> {
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| error.to_string())?.into_data() else { continue };
        if first.is_empty() {
            first = data;
            continue;
        }
        if rest.is_empty() {
            rest.extend_from_slice(&first);
        }
        rest.extend_from_slice(&data);
        if rest.len() > bytes_max {
            return Err(format!("it is longer than {bytes_max} bytes"));
        }
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

const JSON: &str = "application/json";
// A server that knows no metadata alone (one of others) gives whole objects: they hold it, too.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json;q=0.9";
const METADATA_OF_ONE: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json;q=0.9";
// Kubernetes has the first since v1.30, and the second, of the same fields, since v1.26.
const GROUPS: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

fn path(resource: &Resource, key: &Key, subresource: &str) -> String {
    let path = resource.path(key);
    if subresource.is_empty() { path } else { format!("{path}/{subresource}") }
}

fn request(method: Method, url: &str, content_type: &str, body: Bytes) -> Result<Request<Bytes>, Error> {
    let mut request = Request::builder().method(method).uri(url).header(header::ACCEPT, JSON);
    if !content_type.is_empty() {
        request = request.header(header::CONTENT_TYPE, content_type);
    }
    request.body(body).map_err(|error| Error::Decode(format!("{url:?} is no path of the API: {error}")))
}

fn encode(object: &impl Serialize) -> Result<Bytes, Error> {
    let bytes =
        serde_json::to_vec(object).map_err(|error| Error::Decode(format!("cannot encode the body: {error}")))?;
    Ok(bytes.into())
}

/// Decodes one object.
///
/// # Errors
/// [`Error::Decode`] where the bytes are not a `T`.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    corten_meta::from_json(bytes).map_err(|error| Error::Decode(error.to_string()))
}

/// Decodes one object as a projection of it, which has no `managedFields`.
///
/// # Errors
/// As [`decode`].
pub fn decode_projection<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    corten_meta::projected(bytes).map_err(|error| Error::Decode(error.to_string()))
}

/// A resourceVersion as a number, for comparing two of one server; `None` where it is not one.
pub fn version_number(resource_version: &str) -> Option<u64> {
    resource_version.parse().ok()
}

#[derive(Deserialize)]
struct RawList<'a> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListMeta {
    resource_version: String,
    #[serde(rename = "continue")]
    continue_token: String,
}

/// Splits a list into its items, which go on sharing the answer's buffer.
fn read_list(body: &Bytes) -> Result<List, Error> {
    let list: RawList = serde_json::from_slice(body).map_err(|error| Error::Decode(error.to_string()))?;
    let items = list.items.unwrap_or_default();
    Ok(List {
        items: items.into_iter().map(|it| body.slice_ref(it.get().as_bytes())).collect(),
        resource_version: list.metadata.resource_version,
        continue_token: list.metadata.continue_token,
    })
}

#[cfg(test)]
mod tests;
