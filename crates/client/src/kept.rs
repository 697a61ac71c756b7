//! What is kept for a start while no server answers: what was listed and watched last, and single answers.
//!
//! Where it is kept is not a client's to know. An informer hands over what it is told, and begins with what an earlier run has
//! kept where nobody answers for a while. As soon as a server does, its list is the truth, as after any lost watch.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use corten_meta::{Key, Status};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use crate::Error;

/// What an earlier run has kept counts once no server has answered for so long.
const CUT_OFF_AFTER: Duration = Duration::from_secs(5);
/// What is refused (403) for so long, by servers that answer all the while, is kept no more. A server that has just begun refuses what
/// its authorizer has not seen yet. Whoever is refused asks again within two minutes.
const REFUSED_FOR: Duration = Duration::from_secs(300);
/// Of every object: who it is, and which state of it.
const IDENTITY: [&str; 4] = ["metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion"];

/// What of the objects of an informer is kept, and how soon. Fields are named by their paths, through lists: `spec.containers.ports`.
#[derive(Clone, Copy, Debug)]
pub struct Keeping {
    /// Whose view it is: another one may keep other parts of the same objects.
    pub by: &'static str,
    /// What is kept of each; empty: all but `managedFields`.
    pub fields: &'static [&'static str],
    /// A change of these is written; one of others is when something else is. Empty: every change is.
    pub essence: &'static [&'static str],
    /// From one write to the next.
    pub pause: Duration,
    /// What is too much to be kept is kept without its largest objects, and not lost as a whole. Whoever is told so must know what to
    /// do with it: see [`crate::Informer::left_out`].
    pub leaves_out: bool,
}

/// One thing that becomes of a list that is kept.
#[derive(Clone, Debug, PartialEq)]
pub enum KeptChange {
    /// What is kept of an object, and a hash of what of it must not be lost.
    Applied {
        key: Key,
        object: Bytes,
        essence: u64,
    },
    Gone(Key),
    /// All up to this version is known: from now on it stands for what an earlier run has kept.
    Whole {
        version: String,
        pause: Duration,
        leaves_out: bool,
    },
    /// Nobody asks for it any more.
    Forgotten,
}

/// A list as it was when a server answered last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeptList {
    pub items: Vec<Bytes>,
    pub version: String,
    /// There were these, too, and they were too large to be kept.
    pub left_out: Vec<LeftOut>,
}

/// An object of which no more is kept than who it is.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    pub key: Key,
    pub uid: String,
}

/// Where it is kept. Nothing here waits.
pub trait Kept: Send + Sync + 'static {
    /// Somebody begins to list this. Has an earlier run kept it?
    fn has_before(&self, of: &str) -> bool;
    /// What an earlier run has kept under this name, until it is whole anew.
    fn before(&self, of: &str) -> Option<KeptList>;
    fn change(&self, of: &str, change: KeptChange);
    /// What is kept for this owner is needed, whether it is asked for or not.
    fn begin_owner(&self, owner: &str);
    /// The last answer of this name to this owner; `Some(None)`: there was no such object.
    fn answer(&self, owner: &str, what: &str) -> Option<Option<Bytes>>;
    /// Between [`Kept::begin_owner`] and [`Kept::forget_owner`] alone.
    fn keep_answer(&self, owner: &str, what: &str, answer: Option<Bytes>);
    fn forget_answer(&self, owner: &str, what: &str);
    /// No more is asked for it.
    fn forget_owner(&self, owner: &str);
}

/// Where it is kept, and whether a server answers. Clones are the same.
#[derive(Clone)]
pub struct KeptAnswers {
    store: Arc<dyn Kept>,
    /// Since when all requests have been without an answer.
    silent_since: Arc<Mutex<Option<Instant>>>,
    owners: Arc<Mutex<Owners>>,
}

/// For whom answers are kept now. One that comes for another is late: its owner is gone, and nothing would take it away again.
#[derive(Default)]
struct Owners {
    here: BTreeSet<String>,
    /// Since when an answer that is kept has been refused, of an owner and by its name.
    refused: BTreeMap<(String, String), Instant>,
}

impl fmt::Debug for KeptAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptAnswers").field("silent_since", &self.silent_since).finish_non_exhaustive()
    }
}

impl KeptAnswers {
    pub fn new(store: Arc<dyn Kept>) -> Self {
        Self { store, silent_since: Arc::default(), owners: Arc::default() }
    }

    /// No server has answered for a while, whoever asked.
    pub fn is_cut_off(&self) -> bool {
        self.silent_since.lock().is_some_and(|it| it.elapsed() >= CUT_OFF_AFTER)
    }

    /// How a request ended that was begun then.
    pub(crate) fn note(&self, begun: Instant, has_answer: bool) {
        let mut silent_since = self.silent_since.lock();
        if has_answer {
            *silent_since = None;
        } else {
            silent_since.get_or_insert(begun);
        }
        drop(silent_since);
        let mut owners = self.owners.lock();
        if has_answer {
            owners.end_refused(&*self.store);
        } else {
            // Whoever answers next may have begun just then.
            owners.refused.clear();
        }
    }

    pub(crate) fn has_answer(&self, owner: &str, what: &str) -> bool {
        self.store.answer(owner, what).is_some()
    }

    /// Keeps an answer, or gives the one before it where there is none.
    ///
    /// Only a 404 says that there is nothing. A 403 says that this server lets nobody have it now; see [`REFUSED_FOR`].
    pub(crate) fn answer(&self, owner: &str, what: &str, answer: Result<Bytes, Error>) -> Result<Bytes, Error> {
        match &answer {
            Ok(bytes) => self.owners.lock().keep(&*self.store, owner, what, Some(bytes.clone())),
            Err(error) if error.is_not_found() => self.owners.lock().keep(&*self.store, owner, what, None),
            Err(Error::Status(status)) if status.code == 403 && self.has_answer(owner, what) => {
                self.owners.lock().refuse(owner, what);
            }
            Err(error) if is_silence(error) => match self.store.answer(owner, what) {
                Some(Some(bytes)) => return Ok(bytes),
                Some(None) => {
                    let message = format!("there was no {what} when a server answered last");
                    return Err(Status::failure(404, "NotFound", message).into());
                }
                None => {}
            },
            Err(_) => {}
        }
        answer
    }

    pub(crate) fn begin_owner(&self, owner: &str) {
        if self.owners.lock().here.insert(owner.to_owned()) {
            self.store.begin_owner(owner);
        }
    }

    pub(crate) fn forget_owner(&self, owner: &str) {
        let mut owners = self.owners.lock();
        owners.here.remove(owner);
        owners.refused.retain(|(of, _), _| of != owner);
        self.store.forget_owner(owner);
    }
}

impl Owners {
    /// With the store, so that none is kept once its owner is forgotten.
    fn keep(&mut self, store: &dyn Kept, owner: &str, what: &str, answer: Option<Bytes>) {
        self.refused.remove(&(owner.to_owned(), what.to_owned()));
        if self.here.contains(owner) {
            store.keep_answer(owner, what, answer);
        }
    }

    fn refuse(&mut self, owner: &str, what: &str) {
        if self.here.contains(owner) {
            self.refused.entry((owner.to_owned(), what.to_owned())).or_insert_with(Instant::now);
        }
    }

    fn end_refused(&mut self, store: &dyn Kept) {
        self.refused.retain(|(owner, what), since| {
            let goes_on = since.elapsed() < REFUSED_FOR;
            if !goes_on {
                tracing::warn!(
                    owner,
                    what,
                    "refused for {REFUSED_FOR:?}, and not kept any more for a start without the API"
                );
                store.forget_answer(owner, what);
            }
            goes_on
        });
    }
}

/// Nobody has answered, or nobody who knows.
pub(crate) fn is_silence(error: &Error) -> bool {
    match error {
        Error::Transport(_) => true,
        Error::Status(status) => status.code >= 500,
        Error::Decode(_) => false,
    }
}

/// What is kept of one informer's objects.
pub(crate) struct KeptObjects {
    answers: KeptAnswers,
    how: Keeping,
    of: String,
}

impl KeptObjects {
    pub(crate) fn new(answers: &KeptAnswers, how: Keeping, of: String) -> Self {
        Self { answers: answers.clone(), how, of }
    }

    pub(crate) fn has_before(&self) -> bool {
        self.answers.store.has_before(&self.of)
    }

    pub(crate) fn before(&self) -> Option<KeptList> {
        self.answers.store.before(&self.of)
    }

    /// Of what an earlier run has kept.
    pub(crate) fn left_out(&self) -> Vec<LeftOut> {
        if self.how.leaves_out { self.before().map(|it| it.left_out).unwrap_or_default() } else { Vec::new() }
    }

    pub(crate) fn is_cut_off(&self) -> bool {
        self.answers.is_cut_off()
    }

    pub(crate) fn apply(&self, key: &Key, object: &Bytes) {
        // What an informer took in is an object.
        let Ok(mut object) = serde_json::from_slice::<Value>(object) else { return };
        let essence =
            if self.how.essence.is_empty() { hash(&object, self.how.fields) } else { hash(&object, self.how.essence) };
        if self.how.fields.is_empty() {
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("managedFields");
            }
        } else {
            object = part(&object, &[self.how.fields, &IDENTITY[..]].concat());
        }
        let object = Bytes::from(object.to_string());
        self.tell(KeptChange::Applied { key: key.clone(), object, essence });
    }

    pub(crate) fn remove(&self, key: &Key) {
        self.tell(KeptChange::Gone(key.clone()));
    }

    pub(crate) fn whole(&self, version: &str) {
        let Keeping { pause, leaves_out, .. } = self.how;
        self.tell(KeptChange::Whole { version: version.to_owned(), pause, leaves_out });
    }

    pub(crate) fn forget(&self) {
        self.tell(KeptChange::Forgotten);
    }

    fn tell(&self, change: KeptChange) {
        self.answers.store.change(&self.of, change);
    }
}

fn hash(object: &Value, fields: &[&str]) -> u64 {
    let mut hasher = DefaultHasher::new();
    object["metadata"]["uid"].as_str().hash(&mut hasher);
    if fields.is_empty() {
        object["metadata"]["resourceVersion"].as_str().hash(&mut hasher);
    } else {
        part(object, fields).to_string().hash(&mut hasher);
    }
    hasher.finish()
}

/// The fields of these paths and what is in them.
fn part(value: &Value, paths: &[&str]) -> Value {
    if paths.contains(&"") {
        return value.clone();
    }
    match value {
        Value::Object(fields) => {
            let inner = |(name, value): (&String, &Value)| {
                let below: Vec<&str> = paths.iter().filter_map(|it| below(it, name)).collect();
                (!below.is_empty()).then(|| (name.clone(), part(value, &below)))
            };
            fields.iter().filter_map(inner).collect()
        }
        Value::Array(items) => items.iter().map(|it| part(it, paths)).collect(),
        _ => Value::Null,
    }
}

/// The rest of a path that begins with this field. Names of annotations hold dots.
fn below<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(name)?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix('.') }
}

#[cfg(test)]
mod tests;
