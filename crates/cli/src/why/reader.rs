//! What `corten why` reads, through one door: an object is read once, and what the server refuses to show is noted.
//!
//! A refusal is an answer here: who may see little still gets the rest, and is told what is missing.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    pin::Pin,
    rc::Rc,
    time::{Duration, Instant},
};

use corten_api::resources::{JOURNALS, NAMESPACES, PODS};
use corten_client::{Client, Error, List, ListParams, TransportError};
use corten_kinds::Kind;
use corten_meta::{Key, Resource, Time, depth};
use corten_reconcile::{Actor, Decision, Journal};
use serde_json::Value;

use crate::cluster_place::ClusterPlace;

pub(super) type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A page of a list.
#[derive(Default)]
pub(crate) struct Listed {
    pub(crate) items: Vec<Value>,
    /// Asks for the next page; empty: this was the last one.
    pub(crate) next: String,
}

impl Listed {
    fn of(list: List) -> Result<Self, Error> {
        let items = list.items.iter().map(|it| read(it)).collect::<Result<_, _>>()?;
        Ok(Self { items, next: list.continue_token })
    }
}

/// Where objects come from: a server, or a test.
pub(crate) trait Source {
    fn get<'a>(&'a self, resource: &'a Resource, key: &'a Key) -> Answer<'a, Result<Value, Error>>;
    /// A page at a time: a namespace may be very large.
    fn list<'a>(&'a self, resource: &'a Resource, params: &'a ListParams) -> Answer<'a, Result<Listed, Error>>;
    /// The same of their metadata alone.
    fn list_metadata<'a>(&'a self, resource: &'a Resource, params: &'a ListParams)
    -> Answer<'a, Result<Listed, Error>>;
    /// What is served, a group an item (aggregated discovery): everybody who is known may read it.
    fn groups<'a>(&'a self) -> Answer<'a, Result<Vec<Value>, Error>>;
    /// The last lines of a container's log.
    fn log<'a>(&'a self, pod: &'a Key, container: &'a str, previous: bool) -> Answer<'a, Result<String, Error>>;
    /// Does the server serve all it should? Its refusal says what it does not.
    /// Asks for one check of readiness by its name, or for all that must hold.
    fn ready<'a>(&'a self, check: &'a str) -> Answer<'a, Result<(), Error>>;
    /// What nobody can see through it, in words.
    fn hides(&self) -> Option<String> {
        None
    }
}

/// Of a list this many objects are looked at, where one object is asked about.
pub(super) const PAGE: u32 = 500;
/// What is looked at all together, page by page, has so much time from the first question on.
const PAGES_TIME: Duration = Duration::from_secs(20);
const STORE_ROOM: &str = "store-room";
const ACCESS_WEBHOOKS: &str = "access-webhooks";
const CONFIGURATION_FILES: &str = "configuration-files";
const NO_LOG: &str = "unable to retrieve container logs for ";
const LOG_LINES: usize = 8;
/// A line that fills the screen says no more than its beginning.
const LOG_BYTES_MAX: usize = 4096;

impl Source for Client {
    fn get<'a>(&'a self, resource: &'a Resource, key: &'a Key) -> Answer<'a, Result<Value, Error>> {
        Box::pin(async move { read(&Self::get(self, resource, key).await?) })
    }

    fn list<'a>(&'a self, resource: &'a Resource, params: &'a ListParams) -> Answer<'a, Result<Listed, Error>> {
        Box::pin(async move { Listed::of(Self::list(self, resource, params).await?) })
    }

    fn list_metadata<'a>(
        &'a self,
        resource: &'a Resource,
        params: &'a ListParams,
    ) -> Answer<'a, Result<Listed, Error>> {
        Box::pin(async move { Listed::of(Self::list_metadata(self, resource, params).await?) })
    }

    fn groups<'a>(&'a self) -> Answer<'a, Result<Vec<Value>, Error>> {
        Box::pin(async move {
            let groups = self.list_groups().await?;
            groups.items.iter().map(|it| read(it)).collect()
        })
    }

    fn log<'a>(&'a self, pod: &'a Key, container: &'a str, previous: bool) -> Answer<'a, Result<String, Error>> {
        Box::pin(async move {
            let query =
                format!("container={container}&previous={previous}&tailLines={LOG_LINES}&limitBytes={LOG_BYTES_MAX}");
            let bytes = self.get_path(&format!("{}/log?{query}", PODS.path(pod))).await?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        })
    }

    fn ready<'a>(&'a self, check: &'a str) -> Answer<'a, Result<(), Error>> {
        let path = if check.is_empty() { "/readyz".to_owned() } else { format!("/readyz/{check}") };
        Box::pin(async move { self.get_path(&path).await.map(drop) })
    }
}

/// As far as it goes: an object that an earlier release stored too deeply nested hides no other.
fn read(object: &[u8]) -> Result<Value, Error> {
    depth::read(object).map(|it| it.value).map_err(|error| Error::Decode(error.to_string()))
}

/// By what was asked for.
type Objects = BTreeMap<(Resource, Key), Option<Rc<Value>>>;
type Lists = BTreeMap<(Resource, String), Rc<Vec<Value>>>;

pub(crate) struct Reader<'a> {
    source: &'a dyn Source,
    pub(super) now: Time,
    begun: Instant,
    /// What is known of the cluster beside what it answers.
    pub(super) place: ClusterPlace,
    objects: RefCell<Objects>,
    lists: RefCell<Lists>,
    /// Journals that are not shown, or not kept, and that nobody misses.
    unshown: RefCell<BTreeSet<(Resource, Key)>>,
    groups: RefCell<Option<Rc<Vec<Value>>>>,
    hidden: RefCell<BTreeSet<String>>,
    unlisted: RefCell<BTreeMap<Resource, Error>>,
    /// Who did not answer once is not asked again: each request would wait for its own deadline.
    unreachable: RefCell<Option<TransportError>>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(source: &'a dyn Source, now: Time) -> Self {
        Self {
            source,
            now,
            begun: Instant::now(),
            place: ClusterPlace::default(),
            objects: RefCell::default(),
            lists: RefCell::default(),
            unshown: RefCell::default(),
            groups: RefCell::default(),
            hidden: RefCell::default(),
            unlisted: RefCell::default(),
            unreachable: RefCell::default(),
        }
    }

    pub(crate) fn at(self, place: ClusterPlace) -> Self {
        Self { place, ..self }
    }

    /// Why the server gave no answer, where it gave none to a request.
    pub(crate) fn unreachable(&self) -> Option<TransportError> {
        self.unreachable.borrow().clone()
    }

    /// Asks the source, unless it has failed to answer before.
    async fn ask<T>(&self, request: Answer<'_, Result<T, Error>>) -> Result<T, Error> {
        if let Some(error) = self.unreachable() {
            return Err(error.into());
        }
        let answer = request.await;
        if let Err(Error::Transport(error)) = &answer {
            self.unreachable.borrow_mut().get_or_insert_with(|| error.clone());
        }
        answer
    }

    /// Why objects of this kind could not be listed, where they could not.
    pub(super) fn unlisted(&self, resource: &Resource) -> Option<Error> {
        self.unlisted.borrow().get(resource).cloned()
    }

    /// Is a list all there is?
    pub(super) fn is_whole(&self, resource: &Resource, items: &[Value]) -> bool {
        items.len() < PAGE as usize && self.unlisted(resource).is_none()
    }

    /// What the server itself says it cannot do now; none where it is ready.
    pub(super) async fn not_ready(&self) -> Option<String> {
        match self.ask(self.source.ready("")).await {
            Err(Error::Status(status)) if status.code >= 500 => Some(unready_checks(&status.message)),
            _ => None,
        }
    }

    /// What the server says of the room its store has, before it must refuse writes. Not everybody may ask, and not every
    /// server knows the question.
    pub(super) async fn store_room(&self) -> Option<String> {
        match self.ask(self.source.ready(STORE_ROOM)).await {
            Err(Error::Status(status)) if status.code >= 500 => {
                status.message.trim().split("internal server error: ").last().map(str::to_owned)
            }
            _ => None,
        }
    }

    /// What the server says of webhooks that decide about tokens and rights and do not answer, a line each.
    pub(super) async fn access_webhooks(&self) -> Vec<String> {
        self.lines_of(ACCESS_WEBHOOKS).await
    }

    /// What the server says of configuration files that are not used as they are now, a line each.
    pub(super) async fn refused_files(&self) -> Vec<String> {
        self.lines_of(CONFIGURATION_FILES).await
    }

    /// What a check says that fails. Not everybody may ask, and not every server knows the question.
    async fn lines_of(&self, check: &str) -> Vec<String> {
        match self.ask(self.source.ready(check)).await {
            Err(Error::Status(status)) if status.code >= 500 => {
                let said = status.message.trim().split("internal server error: ").last().unwrap_or_default();
                said.lines().map(str::to_owned).collect()
            }
            _ => Vec::new(),
        }
    }

    /// What could not be seen, in words.
    pub(crate) fn hidden(&self) -> Vec<String> {
        self.hidden.borrow().iter().cloned().chain(self.source.hides()).collect()
    }

    /// The object, or the server's refusal.
    pub(super) async fn must_get(&self, resource: &Resource, key: &Key) -> Result<Rc<Value>, Error> {
        let id = (resource.clone(), key.clone());
        if let Some(Some(known)) = self.objects.borrow().get(&id) {
            return Ok(known.clone());
        }
        let object = Rc::new(self.ask(self.source.get(resource, key)).await?);
        self.objects.borrow_mut().insert(id, Some(object.clone()));
        Ok(object)
    }

    /// The object; none where it is not there or may not be seen.
    pub(super) async fn get(&self, resource: &Resource, key: &Key) -> Option<Rc<Value>> {
        let id = (resource.clone(), key.clone());
        if let Some(known) = self.objects.borrow().get(&id) {
            return known.clone();
        }
        let object = match self.ask(self.source.get(resource, key)).await {
            Ok(object) => Some(Rc::new(object)),
            Err(error) => {
                self.note(&error, || format!("{} {:?}", resource.plural, key.name));
                None
            }
        };
        self.objects.borrow_mut().insert(id, object.clone());
        object
    }

    /// True where the server says that there is no such object; a refusal is no such answer.
    pub(super) async fn is_missing(&self, resource: &Resource, key: &Key) -> bool {
        matches!(self.ask(self.source.get(resource, key)).await, Err(error) if error.is_not_found())
    }

    pub(crate) async fn lacks_namespace(&self, name: &str) -> bool {
        self.is_missing(&NAMESPACES, &Key::cluster(name)).await
    }

    /// The first page of what a namespace has; nothing where it may not be seen.
    pub(super) async fn list(&self, resource: &Resource, namespace: &str) -> Rc<Vec<Value>> {
        self.list_where(resource, namespace, "").await
    }

    /// The same, or why it may not be seen; that is told by whoever asks.
    pub(super) async fn try_list(&self, resource: &Resource) -> Result<Rc<Vec<Value>>, Error> {
        let id = (resource.clone(), "?".to_owned());
        if let Some(known) = self.lists.borrow().get(&id) {
            return self.unlisted(resource).map_or(Ok(known.clone()), Err);
        }
        let params = ListParams { limit: PAGE, ..ListParams::default() };
        match self.ask(self.source.list(resource, &params)).await {
            Err(error) => {
                self.unlisted.borrow_mut().insert(resource.clone(), error.clone());
                self.lists.borrow_mut().insert(id, Rc::default());
                Err(error)
            }
            answer => {
                let items = self.listed(resource, "", answer);
                self.lists.borrow_mut().insert(id, items.clone());
                Ok(items)
            }
        }
    }

    pub(super) async fn list_where(&self, resource: &Resource, namespace: &str, fields: &str) -> Rc<Vec<Value>> {
        let id = (resource.clone(), format!("{namespace}?{fields}"));
        if let Some(known) = self.lists.borrow().get(&id) {
            return known.clone();
        }
        let params = ListParams {
            namespace: namespace.to_owned(),
            field_selector: fields.to_owned(),
            limit: PAGE,
            ..ListParams::default()
        };
        let answer = self.ask(self.source.list(resource, &params)).await;
        let items = self.listed(resource, namespace, answer);
        self.lists.borrow_mut().insert(id, items.clone());
        items
    }

    /// As [`Reader::list`], of their metadata alone: what is in a Secret is nobody's business here.
    pub(super) async fn list_metadata(&self, resource: &Resource, namespace: &str) -> Rc<Vec<Value>> {
        let params = ListParams { namespace: namespace.to_owned(), limit: PAGE, ..ListParams::default() };
        let answer = self.ask(self.source.list_metadata(resource, &params)).await;
        self.listed(resource, namespace, answer)
    }

    /// Looks at all there are of a kind, page by page, as far as there is time; at their metadata alone where that is enough.
    pub(super) async fn each(
        &self,
        resource: &Resource,
        namespace: &str,
        is_metadata_enough: bool,
        mut look: impl FnMut(Value),
    ) {
        let mut params = ListParams { namespace: namespace.to_owned(), limit: PAGE, ..ListParams::default() };
        let mut n_looked_at = 0;
        loop {
            let answer = match is_metadata_enough {
                true => self.ask(self.source.list_metadata(resource, &params)).await,
                false => self.ask(self.source.list(resource, &params)).await,
            };
            let Listed { items, next } = match answer {
                Ok(page) => page,
                Err(error) => {
                    self.note(&error, || what(resource, namespace));
                    self.unlisted.borrow_mut().insert(resource.clone(), error);
                    return;
                }
            };
            n_looked_at += items.len();
            if params.continue_token.is_empty() && next.is_empty() && !is_metadata_enough {
                // Who is explained may ask for the same.
                let id = (resource.clone(), format!("{namespace}?"));
                self.lists.borrow_mut().insert(id, Rc::new(items.clone()));
            }
            items.into_iter().for_each(&mut look);
            if next.is_empty() {
                return;
            }
            if self.begun.elapsed() > PAGES_TIME {
                self.only_the_first(n_looked_at, resource, namespace);
                return;
            }
            params.continue_token = next;
        }
    }

    fn only_the_first(&self, n: usize, resource: &Resource, namespace: &str) {
        let said = format!("{}: only the first {n} were looked at", what(resource, namespace));
        self.hidden.borrow_mut().insert(said);
    }

    /// What a list answered, and what is to be said of it.
    fn listed(&self, resource: &Resource, namespace: &str, answer: Result<Listed, Error>) -> Rc<Vec<Value>> {
        let page = answer.unwrap_or_else(|error| {
            self.note(&error, || what(resource, namespace));
            self.unlisted.borrow_mut().insert(resource.clone(), error);
            Listed::default()
        });
        if !page.next.is_empty() {
            self.only_the_first(page.items.len(), resource, namespace);
        }
        Rc::new(page.items)
    }

    /// What the server says where it cannot list what it has; that somebody may not see it is no concern here.
    pub(super) async fn refused_list(&self, resource: &Resource) -> Option<String> {
        let params = ListParams { limit: PAGE, ..ListParams::default() };
        match self.ask(self.source.list_metadata(resource, &params)).await {
            Err(Error::Status(status)) if status.code >= 500 => Some(status.message),
            _ => None,
        }
    }

    /// What is served, a group an item; nothing where the server does not say.
    pub(super) async fn groups(&self) -> Rc<Vec<Value>> {
        if let Some(known) = self.groups.borrow().as_ref() {
            return known.clone();
        }
        let answer = self.ask(self.source.groups()).await;
        let groups = Rc::new(answer.unwrap_or_else(|error| {
            self.note(&error, || "which kinds there are".to_owned());
            Vec::new()
        }));
        *self.groups.borrow_mut() = Some(groups.clone());
        groups
    }

    /// The last lines a container wrote.
    pub(super) async fn log(&self, pod: &Key, container: &str, previous: bool) -> Vec<String> {
        match self.ask(self.source.log(pod, container, previous)).await {
            // What is said in place of a log that is gone is none.
            Ok(text) if text.starts_with(NO_LOG) => Vec::new(),
            Ok(text) => text.lines().map(|it| it.trim_end().to_owned()).filter(|it| !it.is_empty()).collect(),
            Err(error) => {
                self.note(&error, || format!("the log of {}", pod.name));
                Vec::new()
            }
        }
    }

    /// The loops' decisions; none where no journal is kept (the loops have just started).
    pub(super) async fn decisions(&self, kind: &Kind, key: &Key) -> Vec<Decision> {
        self.journal(kind, key).await.decisions
    }

    /// The same of an object that was not asked about: nobody misses them who may not see them.
    pub(super) async fn decisions_if_shown(&self, kind: &Kind, key: &Key) -> Vec<Decision> {
        let key = journal_key(kind, key);
        let id = (JOURNALS.clone(), key.clone());
        if self.unshown.borrow().contains(&id) {
            return Vec::new();
        }
        let Ok(journal) = self.must_get(&JOURNALS, &key).await else {
            self.unshown.borrow_mut().insert(id);
            return Vec::new();
        };
        serde_json::from_value::<Journal>((*journal).clone()).map(|it| it.decisions).unwrap_or_default()
    }

    /// What the loops say of an object, and which of them do not run; empty where none is kept.
    pub(super) async fn journal(&self, kind: &Kind, key: &Key) -> Journal {
        let Some(journal) = self.get(&JOURNALS, &journal_key(kind, key)).await else { return Journal::default() };
        serde_json::from_value((*journal).clone()).unwrap_or_default()
    }

    /// The journals of what somebody must act for, in every namespace where that may be seen, else in this one.
    pub(super) async fn journals_of_waits(&self, namespace: &str) -> Vec<Value> {
        let params = |namespace: &str| ListParams {
            namespace: namespace.to_owned(),
            field_selector: format!("decisions.waits.actor!={}", Actor::Cluster.as_str()),
            limit: PAGE,
            ..ListParams::default()
        };
        let everywhere = self.ask(self.source.list(&JOURNALS, &params(""))).await;
        let answer = match everywhere {
            Err(Error::Status(status)) if status.code == 403 && !namespace.is_empty() => {
                self.ask(self.source.list(&JOURNALS, &params(namespace))).await
            }
            answer => answer,
        };
        let page = answer.unwrap_or_else(|error| {
            self.note(&error, || "what loops wait for".to_owned());
            Listed::default()
        });
        page.items
    }

    /// Says that something could not be seen, and why. What is not there is no such thing.
    pub(super) fn note(&self, error: &Error, what: impl Fn() -> String) {
        let said = match error {
            Error::Status(status) if status.is_not_found() => return,
            Error::Status(status) if status.code == 403 => format!("{}: you may not see it", what()),
            other => format!("{}: {other}", what()),
        };
        self.hidden.borrow_mut().insert(said);
    }
}

/// A list, in words.
fn what(resource: &Resource, namespace: &str) -> String {
    let place = if namespace.is_empty() { "all namespaces" } else { namespace };
    let place = if resource.namespaced { format!(" in {place}") } else { String::new() };
    format!("the list of {}{place}", resource.plural)
}

fn journal_key(kind: &Kind, key: &Key) -> Key {
    let namespace = if key.namespace.is_empty() { "default" } else { &key.namespace };
    Key::new(namespace, format!("{}.{}", kind.resource.qualified(), key.name))
}

/// Of `[+]ping ok` and `[-]etcd-readiness failed: the store cannot write`, the checks that failed.
fn unready_checks(answer: &str) -> String {
    let failed: Vec<&str> = answer.lines().filter_map(|it| it.trim().strip_prefix("[-]")).collect();
    if failed.is_empty() { super::fields::one_line(answer) } else { failed.join("; ") }
}
