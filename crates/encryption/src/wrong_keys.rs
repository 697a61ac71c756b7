//! Keys that have the name of one that values are stored under, and are another: what they do not open is in memory, and nobody can
//! read it after the next start. A configuration that has one is not used.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use corten_store::{BoxFuture, Error, Page, Range};
use tokio::time::Instant;

use crate::{
    group_resource::GroupResource,
    load::Loaded,
    transformers::{ByResource, Transformers, maker},
};

pub(crate) const PAGE: usize = 500;
/// A file that was refused is looked at each second, and all values no oftener than this.
const AGAIN: Duration = Duration::from_secs(60);

/// What is stored, as it is stored.
pub(crate) trait Stored {
    fn page(&self, range: Range) -> BoxFuture<'_, Result<Page, Error>>;
    fn resource_of(&self, key: &[u8]) -> Option<GroupResource>;
}

/// What was found of the file that was tried last.
#[derive(Default)]
pub(crate) struct WrongKeys(Option<(String, Instant, Result<(), String>)>);

/// Values of a resource that begin with the name of a key.
#[derive(Default)]
struct Tried {
    n: usize,
    n_closed: usize,
    /// Of these the configuration in use opens so many.
    n_lost: usize,
}

impl WrongKeys {
    /// # Errors
    /// Which keys are not those that values were stored under, and what to do; or nobody knows, because the store does not answer.
    pub(crate) async fn none_in(
        &mut self,
        stored: &impl Stored,
        before: &Loaded,
        loaded: &Loaded,
    ) -> Result<(), String> {
        if let Some((hash, at, said)) = &self.0
            && *hash == loaded.hash
            && at.elapsed() < AGAIN
        {
            return said.clone();
        }
        let said = look(stored, &before.by_resource, &loaded.by_resource).await;
        self.0 = Some((loaded.hash.clone(), Instant::now(), said.clone()));
        said
    }
}

async fn look(stored: &impl Stored, before: &ByResource, by_resource: &ByResource) -> Result<(), String> {
    let mut found: BTreeMap<(String, String), Tried> = BTreeMap::new();
    let mut range = Range::prefix("/");
    // All of it: one value that was not looked at may be lost.
    loop {
        let page = stored.page(range.clone()).await;
        let page = page.map_err(|it| format!("whether its keys open what is stored cannot be found out: {it}"))?;
        for entry in &page.entries {
            let Some(resource) = stored.resource_of(&entry.key) else { continue };
            let Some(transformers) = by_resource.of(&resource) else { continue };
            let before = before.of(&resource).map(|it| &**it);
            if let Some(opened) = opens(before, transformers, &entry.key, &entry.value) {
                let key = maker(&entry.value).unwrap_or_default();
                let tried = found.entry((resource.to_string(), key)).or_default();
                tried.n += 1;
                tried.n_closed += usize::from(opened != Value::Opened);
                tried.n_lost += usize::from(opened == Value::Lost);
            }
        }
        match page.entries.last() {
            Some(last) if page.more => range.start = [&last.key[..], b"\0"].concat().into(),
            _ => break,
        }
    }
    let wrong: Vec<String> = found.iter().filter_map(|((resource, key), it)| it.said(resource, key)).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

#[derive(PartialEq, Eq)]
enum Value {
    Opened,
    /// Neither opens it.
    Closed,
    /// The configuration in use opens it, and the other one does not.
    Lost,
}

/// `None` where nothing has changed for it, or no key has its name: what has lost its key is told of elsewhere.
fn opens(before: Option<&Transformers>, transformers: &Transformers, at: &[u8], stored: &Bytes) -> Option<Value> {
    if before.is_some_and(|it| transformers.has_all_of(it, stored)) {
        return None;
    }
    Some(match transformers.opens(at, stored)? {
        true => Value::Opened,
        false if before.and_then(|it| it.opens(at, stored)) == Some(true) => Value::Lost,
        false => Value::Closed,
    })
}

impl Tried {
    /// One that opens some of them is taken: it may be the right one that comes back, after others were written under a wrong one.
    fn said(&self, resource: &str, key: &str) -> Option<String> {
        let Self { n, n_closed, n_lost } = self;
        if n_closed == n {
            return Some(format!(
                "{key} opens none of the {n} of {resource} under its name: give the new key a new name, put it first, keep the old one"
            ));
        }
        if *n_lost > 0 {
            tracing::error!(
                resource,
                key,
                "{key} does not open {n_lost} of the {n} of {resource} under its name, which the key before opened: write them anew before the next start"
            );
        }
        None
    }
}
