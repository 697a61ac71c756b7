//! Stored objects, and events of them, in another version: each converted once, however many ask.

use std::{collections::BTreeMap, sync::Arc};

use corten_cacher::{
    body::BoxFuture,
    watch_cache::{Event, PendingConversion, ResourceCache, Slot, Stored, versions},
};
use corten_kinds::{KindRef, Versions};
use corten_meta::Status;
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use serde_json::Value;

use crate::{Conversion, Inner};

/// What one question holds at most.
const OBJECTS_MAX: usize = 500;
const QUESTION_BYTES_MAX: usize = 1 << 20;
/// So many questions for one answer are under way at once.
const QUESTIONS_AT_ONCE: usize = 4;

/// In which version objects are wanted, and whose they are.
#[derive(Clone, Copy)]
pub(crate) struct Destination<'a> {
    pub(crate) row: &'a KindRef,
    pub(crate) cache: &'a Arc<ResourceCache>,
}

/// What is asked together, and which of the wanted objects stand where in its answer.
struct Question {
    under_way: PendingConversion,
    places: Vec<(usize, usize)>,
}

type Answer = (Arc<[Arc<Stored>]>, Vec<(usize, usize)>);

impl Question {
    fn answered(self) -> BoxFuture<'static, Result<Answer, Status>> {
        Box::pin(async move { Ok((self.under_way.await?, self.places)) })
    }
}

impl Conversion {
    /// One object as [`Self::all_stored`] gives many.
    ///
    /// # Errors
    /// See there.
    pub async fn stored(
        &self,
        row: &KindRef,
        cache: &Arc<ResourceCache>,
        object: &Arc<Stored>,
    ) -> Result<Arc<Stored>, Status> {
        if !versions::needs_webhook(row, object) {
            return Ok(object.clone());
        }
        let mut converted = self.all_stored(row, cache, std::slice::from_ref(object)).await?;
        converted.pop().ok_or_else(|| Status::internal("no converted object"))
    }

    /// The objects in the version of `row`, in their order. One that no webhook converts is given as it is.
    ///
    /// # Errors
    /// 500 where the webhook does not convert one of them.
    pub fn all_stored<'a>(
        &'a self,
        row: &'a KindRef,
        cache: &'a Arc<ResourceCache>,
        objects: &'a [Arc<Stored>],
    ) -> BoxFuture<'a, Result<Vec<Arc<Stored>>, Status>> {
        Box::pin(async move {
            let mut out: Vec<Option<Arc<Stored>>> = vec![None; objects.len()];
            let mut questions: Vec<Question> = Vec::new();
            for (at, question, place) in self.claim(Destination { row, cache }, objects, &mut out) {
                match questions.iter_mut().rev().find(|it| it.under_way.ptr_eq(&question)) {
                    Some(known) => known.places.push((at, place)),
                    None => questions.push(Question { under_way: question, places: vec![(at, place)] }),
                }
            }
            let answers: Vec<_> = questions.into_iter().map(Question::answered).collect();
            let mut answers = stream::iter(answers).buffered(QUESTIONS_AT_ONCE);
            let version = &row.resource.version;
            while let Some((answer, places)) = answers.try_next().await? {
                for (at, place) in places {
                    let converted = answer[place].clone();
                    if !matches!(objects[at].converted.get(version), Some(Slot::Done(_))) {
                        self.0.kept.keep(&objects[at], version, converted.clone());
                    }
                    out[at] = Some(converted);
                }
            }
            Ok(out.into_iter().flatten().collect())
        })
    }

    /// Events with their objects in the version of `row`, in their order: one for all who watch that version.
    ///
    /// # Errors
    /// See [`Self::all_stored`].
    pub async fn events(
        &self,
        row: &KindRef,
        cache: &Arc<ResourceCache>,
        events: &[Arc<Event>],
    ) -> Result<Vec<Arc<Event>>, Status> {
        let version = &row.resource.version;
        let known: Vec<Option<Arc<Event>>> = events.iter().map(|it| it.in_version(version)).collect();
        let new = || events.iter().zip(&known).filter(|it| it.1.is_none()).map(|it| it.0);
        let objects: Vec<Arc<Stored>> = new().flat_map(|it| it.object.iter().chain(&it.previous)).cloned().collect();
        let mut converted = self.all_stored(row, cache, &objects).await?.into_iter();
        let converted = events.iter().zip(known).map(|(event, known)| {
            known.unwrap_or_else(|| {
                let object = event.object.as_ref().and_then(|_| converted.next());
                let previous = event.previous.as_ref().and_then(|_| converted.next());
                event.keep_version(version, Arc::new(Event::new(event.revision, object, previous)))
            })
        });
        Ok(converted.collect())
    }

    /// Finds who converts each object, and begins with those that nobody does. Gives what is to be waited for, and puts into `out`
    /// what is not.
    fn claim(
        &self,
        destination: Destination<'_>,
        objects: &[Arc<Stored>],
        out: &mut [Option<Arc<Stored>>],
    ) -> Vec<(usize, PendingConversion, usize)> {
        let row = destination.row;
        let version = &row.resource.version;
        let mut awaited = Vec::new();
        // A question is about objects of one version.
        let mut fresh: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        self.0.kept.forget_old();
        let _claims = self.0.claims.lock();
        for (at, object) in objects.iter().enumerate() {
            if !versions::needs_webhook(row, object) {
                out[at] = Some(object.clone());
                continue;
            }
            match object.converted.get(version) {
                Some(Slot::Done(converted)) => out[at] = Some(converted),
                Some(Slot::UnderWay(question, place)) => match question.upgrade() {
                    Some(question) => awaited.push((at, question, place)),
                    None => fresh.entry(object.version()).or_default().push(at),
                },
                None => fresh.entry(object.version()).or_default().push(at),
            }
        }
        for mut places in fresh.into_values() {
            while !places.is_empty() {
                let n = fitting(places.iter().map(|it| objects[*it].value().len()));
                let rest = places.split_off(n);
                let of: Vec<Arc<Stored>> = places.iter().map(|it| objects[*it].clone()).collect();
                let question = self.question(destination, of);
                for (place, at) in places.iter().enumerate() {
                    if let Some(weak) = question.downgrade() {
                        objects[*at].converted.set(version, Slot::UnderWay(weak, place));
                    }
                    awaited.push((*at, question.clone(), place));
                }
                places = rest;
            }
        }
        awaited.sort_by_key(|it| it.0);
        awaited
    }

    fn question(&self, destination: Destination<'_>, objects: Vec<Arc<Stored>>) -> PendingConversion {
        let inner = self.0.clone();
        let (row, cache) = (destination.row.clone(), destination.cache.clone());
        let asking: BoxFuture<'static, _> = Box::pin(async move {
            let Some(versions) = row.versions.clone() else { return Ok(objects.into()) };
            inner.convert_stored(&versions, &row, &cache, &objects).await
        });
        asking.shared()
    }
}

impl Inner {
    async fn convert_stored(
        &self,
        versions: &Versions,
        row: &KindRef,
        cache: &ResourceCache,
        objects: &[Arc<Stored>],
    ) -> Result<Arc<[Arc<Stored>]>, Status> {
        let to = versions.by_name(&row.resource.version).unwrap_or_else(|| versions.storage());
        let values: Vec<Value> = objects.iter().map(|it| it.parse()).collect();
        let converted = self.convert(versions, to, values).await?;
        let made = objects.iter().zip(&converted).map(|(of, converted)| {
            let made = cache.in_other_version(of, &to.resource, converted);
            made.ok_or_else(|| Status::internal(format!("the converted object {} cannot be read", of.key)))
        });
        made.collect()
    }
}

/// How many of them one question takes: at least one.
fn fitting(sizes: impl Iterator<Item = usize>) -> usize {
    let mut bytes = 0;
    let fits = |size: &usize| {
        bytes += size;
        bytes <= QUESTION_BYTES_MAX
    };
    sizes.take(OBJECTS_MAX).take_while(fits).count().max(1)
}
