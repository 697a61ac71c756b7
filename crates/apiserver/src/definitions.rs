//! Serves what CustomResourceDefinitions describe, and says in their status how far that is (the naming, establishing and
//! finalizing controllers of apiextensions-apiserver).
//!
//! A definition goes through these steps, each of which the next start finds where it stands: its names are accepted; its
//! objects are read into a cache; they are served; it is `Established`. One that is being deleted takes no new objects, loses
//! those it has, and then its finalizer.

mod cleanup;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use corten_api::resources::CUSTOM_RESOURCE_DEFINITIONS;
use corten_conversion::KnownDefinition;
use corten_kinds::{
    KindRef, Kinds,
    custom::{names_of, with_names},
};
use corten_meta::{Key, Resource, Status};
use corten_schema::structural::timed;
use futures_util::future::{join_all, select_all};
use http::Method;
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    own_requests::{self, JSON},
    state::State,
};

static DEFINITIONS: Resource = CUSTOM_RESOURCE_DEFINITIONS;

/// Before what failed is tried again.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// What is known of each definition, by its name.
#[derive(Default)]
pub(crate) struct Definitions(BTreeMap<String, KnownDefinition>);

impl Definitions {
    /// Serves what is established already: before anybody asks.
    pub(crate) async fn load(state: &State) -> Result<Self, corten_store::Error> {
        let mut definitions = Self::default();
        definitions.look(state);
        definitions.serve(state).await?;
        Ok(definitions)
    }

    /// Follows the definitions until the server ends.
    pub(crate) async fn run(mut self, state: State, mut ended: watch::Receiver<bool>) {
        let following = async {
            let mut retry = RETRY;
            loop {
                let changes = self.changes(&state);
                let is_done = self.step(&state).await;
                // What failed is tried again, whatever else happens; what did not waits for a change.
                if is_done {
                    retry = RETRY;
                    changes.any().await;
                } else {
                    drop(tokio::time::timeout(retry, changes.any()).await);
                    retry = (retry * 2).min(RETRY_MAX);
                }
            }
        };
        tokio::select! {
            biased;
            _ = ended.wait_for(|it| *it) => {}
            () = following => {}
        }
    }

    /// What wakes the loop: the definitions, and the objects of those that go.
    fn changes(&self, state: &State) -> Changes {
        let caches = state.caches();
        let definitions = caches.get(&DEFINITIONS).map(|it| it.events());
        let leaving = self.0.values().filter(|it| it.is_leaving()).filter_map(|it| {
            let stored = it.rows()?.stored.clone();
            caches.custom(&stored).map(|it| it.events())
        });
        Changes(definitions.into_iter().chain(leaving).map(|it| (it.count(), it)).collect())
    }

    /// Gets every definition as far as it comes now. False where one did not get on that should have.
    async fn step(&mut self, state: &State) -> bool {
        self.look(state);
        let told = write_all(state, self.tell_names(state)).await;
        for (name, result) in &told {
            if result.is_ok()
                && let Some(known) = self.0.get_mut(name)
            {
                known.mark_told();
            }
        }
        let mut refused = refusals(told);
        self.look(state);
        let served = self.serve(state).await;
        if let Err(error) = &served {
            tracing::warn!(%error, "custom resources cannot be read");
        }
        let established = self.0.values().filter_map(|it| it.established(state.now()));
        refused.extend(update_all(state, established.collect()).await);
        self.look(state);
        let leaving = self.0.values().filter(|it| it.is_leaving());
        let emptied = leaving.map(|it| async { (it.name().to_owned(), cleanup::empty(state, it).await) });
        refused.extend(refusals(join_all(emptied).await));
        state.refused_definitions().replace(&refused);
        served.is_ok() && refused.is_empty()
    }

    /// Reads what has changed of the definitions.
    fn look(&mut self, state: &State) {
        let Some(snapshot) = state.caches().get(&DEFINITIONS).map(|it| it.snapshot()) else { return };
        for stored in snapshot.iter() {
            match self.0.get_mut(stored.name()) {
                Some(known) if known.is_of(stored) => {}
                Some(known) => known.take(stored.clone()),
                None => drop(self.0.insert(stored.name().to_owned(), KnownDefinition::new(stored.clone()))),
            }
        }
        for (name, known) in &mut self.0 {
            if snapshot.get("", name).is_none() {
                known.is_gone = true;
            }
        }
    }

    /// The definitions whose names are to be looked at, with what their status then says. Who came first has its names. Those whose
    /// status says it already are done with.
    fn tell_names(&mut self, state: &State) -> Vec<Value> {
        let (mut changed, mut told) = (Vec::new(), Vec::new());
        let mut unsettled: Vec<&KnownDefinition> = self.0.values().filter(|it| !it.is_gone && !it.is_named()).collect();
        unsettled.sort_by_key(|it| it.age());
        let mut taken: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for known in self.0.values() {
            let names = known.accepted_names().cloned();
            taken.entry(known.group()).or_default().extend(names.map(|it| (known.name(), it)));
        }
        for known in unsettled {
            let of_group = taken.entry(known.group()).or_default();
            let others: Vec<_> =
                of_group.iter().filter(|it| it.0 != known.name()).map(|(_, names)| names.clone()).collect();
            let definition = known.definition();
            let not_structural = corten_kinds::not_structural(&definition);
            match with_names(&definition, &others, &not_structural, state.now()) {
                Some(new) => {
                    of_group.push((known.name(), names_of(&new)));
                    changed.push(new);
                }
                None => told.push(known.name().to_owned()),
            }
        }
        for name in &told {
            if let Some(known) = self.0.get_mut(name) {
                known.mark_told();
            }
        }
        changed
    }

    /// Makes what is served what the definitions say.
    async fn serve(&mut self, state: &State) -> Result<(), corten_store::Error> {
        let (caches, store) = (state.caches(), &state.config().store);
        let mut is_changed = false;
        for known in self.0.values_mut().filter(|it| !it.is_gone) {
            let cel = state.metrics().cel.clone();
            let Some(made) = timed(Instant::now, move |it| cel.compiled(it), || known.make_rows()) else { continue };
            if made.needs_cache {
                caches.add(&**store, KindRef::Custom(made.rows.stored.clone())).await?;
            }
            state.conversion().forget(known.name());
            known.served = Some(made);
            is_changed = true;
        }
        let (gone, there): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.0).into_iter().partition(|it| it.1.is_gone);
        self.0 = there;
        is_changed |= gone.values().any(|it| it.rows().is_some());
        if is_changed {
            let rows = self.0.values().filter_map(KnownDefinition::rows);
            state.serve_kinds(Kinds::with(rows.flat_map(|it| it.served.iter().cloned())));
        }
        gone.values().for_each(|it| state.conversion().gone(it.name()));
        for rows in gone.values().filter_map(KnownDefinition::rows) {
            caches.remove(&rows.stored.resource);
            rows.served.iter().for_each(|it| state.metrics().forget(&it.resource));
        }
        Ok(())
    }
}

/// How many events each source has had.
struct Changes(Vec<(u64, corten_cacher::watch_cache::Events)>);

impl Changes {
    async fn any(&self) {
        select_all(self.0.iter().map(|(count, it)| Box::pin(it.after(*count)))).await;
    }
}

/// Writes their status. Says what could not be written, and why.
async fn update_all(state: &State, definitions: Vec<Value>) -> Vec<(String, Status)> {
    refusals(write_all(state, definitions).await)
}

async fn write_all(state: &State, definitions: Vec<Value>) -> Vec<(String, Result<(), Status>)> {
    let updates = definitions.into_iter().map(|it| async move {
        let name = it["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let path = format!("{}/status", DEFINITIONS.path(&Key::new("", &*name)));
        let answer = own_requests::send(state, Method::PUT, &path, JSON, it.to_string().into()).await;
        (name, answer.map(drop))
    });
    join_all(updates).await
}

/// The definitions that do not get on. Where somebody else wrote one meanwhile, it is looked at again.
fn refusals(results: Vec<(String, Result<(), Status>)>) -> Vec<(String, Status)> {
    let refused = results.into_iter().filter_map(|(name, result)| Some((name, result.err()?)));
    let refused: Vec<_> = refused.filter(|(_, it)| !it.is_conflict() && !it.is_not_found()).collect();
    for (name, status) in &refused {
        tracing::warn!(definition = name, error = %status, "a definition of custom resources does not get on");
    }
    refused
}
