//! What is known of one definition: little, because there may be hundreds, and their schemas are large. The rest is read again
//! where it is needed.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Arc, LazyLock},
};

use corten_cacher::watch_cache::Stored;
use corten_kinds::custom::{
    CLEANUP_FINALIZER, Condition, DefinedNames, Rows, approved_by, has_condition, names_of, rows, with_condition,
};
use corten_meta::Time;
use serde_json::Value;

/// A definition's rows, for as long as they are served.
pub struct Served {
    pub rows: Arc<Rows>,
    of: Origin,
    pub needs_cache: bool,
}

pub struct KnownDefinition {
    stored: Arc<Stored>,
    uid: String,
    group: String,
    created: String,
    generation: i64,
    /// The names it has, or asks for where it has none yet.
    names: DefinedNames,
    has_names: bool,
    is_named: bool,
    is_established: bool,
    is_terminating: bool,
    is_held: bool,
    /// Of `spec`.
    hash: u64,
    /// It is no longer stored.
    pub is_gone: bool,
    /// What is served of it.
    pub served: Option<Served>,
    /// What is served is of this one, which another has taken the place of.
    replaced: Option<Arc<Stored>>,
    /// By what leave it is in a protected group.
    approved_by: String,
    /// Its names, its schemas and its leave were looked at, as they stand in this generation, and its status says what of them.
    looked_at: Option<(i64, String)>,
}

/// What rows are made of: where it has changed, so have they.
#[derive(Clone, PartialEq, Eq)]
struct Origin {
    uid: String,
    hash: u64,
    names: DefinedNames,
    is_leaving: bool,
}

/// Nobody can make two schemas that it takes for one: it is another at each start.
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

impl KnownDefinition {
    pub fn new(stored: Arc<Stored>) -> Self {
        let definition = stored.parse();
        let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let finalizers = definition["metadata"]["finalizers"].as_array();
        Self {
            uid: text("/metadata/uid"),
            group: text("/spec/group"),
            created: text("/metadata/creationTimestamp"),
            generation: definition["metadata"]["generation"].as_i64().unwrap_or_default(),
            names: names_of(&definition),
            has_names: !text("/status/acceptedNames/plural").is_empty(),
            is_named: has_condition(&definition, "NamesAccepted"),
            is_established: has_condition(&definition, "Established"),
            is_terminating: definition["metadata"]["deletionTimestamp"].is_string(),
            is_held: finalizers.is_some_and(|it| it.iter().any(|it| it == CLEANUP_FINALIZER)),
            hash: HASHER.hash_one(definition["spec"].to_string()),
            is_gone: false,
            served: None,
            replaced: None,
            approved_by: approved_by(&definition).to_owned(),
            looked_at: None,
            stored,
        }
    }

    /// Takes what is stored now.
    pub fn take(&mut self, stored: Arc<Stored>) {
        let served = self.served.take();
        let looked_at = self.looked_at.take().filter(|_| self.uid == stored.uid());
        let is_another = served.as_ref().is_some_and(|it| it.of.uid == self.uid) && self.uid != stored.uid();
        let replaced = if is_another { Some(self.stored.clone()) } else { self.replaced.take() };
        *self = Self { served, looked_at, replaced, ..Self::new(stored) };
    }

    pub fn definition(&self) -> Value {
        self.stored.parse()
    }

    pub fn is_of(&self, stored: &Stored) -> bool {
        !self.is_gone && self.stored.revision() == stored.revision() && self.uid == stored.uid()
    }

    pub fn name(&self) -> &str {
        self.stored.name()
    }

    pub fn uid(&self) -> &str {
        &self.uid
    }

    pub fn group(&self) -> &str {
        &self.group
    }

    /// By which definitions stand in the order in which they came.
    pub fn age(&self) -> (&str, impl Ord + use<>) {
        (&self.created, self.stored.revision())
    }

    /// Has it the names that it asks for, and does it say so?
    pub fn is_named(&self) -> bool {
        self.is_named && self.looked_at.as_ref().is_some_and(|it| it.0 == self.generation && it.1 == self.approved_by)
    }

    /// Its status says what is to be said of it as it stands now.
    pub fn mark_told(&mut self) {
        self.looked_at = Some((self.generation, self.approved_by.clone()));
    }

    /// The names that no other may have.
    pub fn accepted_names(&self) -> Option<&DefinedNames> {
        (self.has_names && !self.is_gone).then_some(&self.names)
    }

    /// Is it being deleted, and its objects not gone yet?
    pub fn is_leaving(&self) -> bool {
        !self.is_gone && self.is_terminating && self.is_held
    }

    pub fn is_established(&self) -> bool {
        self.is_established
    }

    /// Are the rows that are served its own, and not of one whose place it has taken?
    pub fn is_served(&self) -> bool {
        self.served.as_ref().is_some_and(|it| it.of.uid == self.uid)
    }

    /// What its status says once its objects are served; `None` where it says so already.
    pub fn established(&self, now: Time) -> Option<Value> {
        if !self.is_served() || self.is_gone || self.is_leaving() || self.is_established {
            return None;
        }
        let condition = Condition {
            kind: "Established",
            is_true: true,
            reason: "InitialNamesAccepted",
            message: "the initial names have been accepted".into(),
        };
        with_condition(&self.definition(), &condition, now)
    }

    /// Do the rows that are served refuse new objects?
    pub fn refuses_objects(&self) -> bool {
        self.served.as_ref().is_none_or(|it| it.of.is_leaving)
    }

    pub fn rows(&self) -> Option<&Arc<Rows>> {
        self.served.as_ref().map(|it| &it.rows)
    }

    /// The rows it is to be served by from now on; `None` where those there are are still right, or it may have none yet.
    pub fn make_rows(&mut self) -> Option<Served> {
        if !self.is_established && !self.is_named {
            return self.rows_of_the_replaced();
        }
        self.replaced = None;
        let of = Origin {
            uid: self.uid.clone(),
            hash: self.hash,
            names: self.names.clone(),
            is_leaving: self.is_terminating,
        };
        let before = self.served.as_ref();
        if before.is_some_and(|it| it.of == of) {
            return None;
        }
        // That it takes no new objects does not change those it has.
        let needs_cache = before.is_none_or(|it| Origin { is_leaving: of.is_leaving, ..it.of.clone() } != of);
        let rows = Arc::new(rows(&self.definition())?);
        Some(Served { rows, of, needs_cache })
    }

    /// The rows of the definition whose place this one has taken: nothing more is made of it.
    fn rows_of_the_replaced(&mut self) -> Option<Served> {
        let before = self.served.as_ref().filter(|it| !it.of.is_leaving)?;
        let mut definition = self.replaced.take()?.parse();
        definition["metadata"]["deletionTimestamp"] = definition["metadata"]["creationTimestamp"].clone();
        let of = Origin { is_leaving: true, ..before.of.clone() };
        Some(Served { rows: Arc::new(rows(&definition)?), of, needs_cache: false })
    }
}
