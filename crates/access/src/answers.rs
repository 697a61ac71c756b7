//! Decisions for who cannot wait: expressions in CEL, and whoever goes through many questions.
//!
//! What can be decided at once is. A question that a webhook must be asked is noted, and answered with no for the moment; once all else
//! has been said it is asked, and whoever asked begins again, knowing the answer. So a mind stays one, and an await needs no thread.

use std::collections::{BTreeMap, HashMap};

use corten_cacher::watch_cache::Caches;
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;

use crate::{
    authorizer::Authorizer,
    question::{Attributes, Decision, Denial, ResourceOrPath},
};

/// So often somebody begins again for one question more.
const ROUNDS_MAX: usize = 256;
/// So many questions of one round are under way at once.
const UNDER_WAY_MAX: usize = 16;

pub struct Answers<'a> {
    authorizer: &'a Authorizer,
    caches: &'a Caches,
    known: Mutex<HashMap<Question, Decision>>,
    missing: Mutex<Vec<Question>>,
}

impl<'a> Answers<'a> {
    pub(crate) fn new(authorizer: &'a Authorizer, caches: &'a Caches) -> Self {
        Self { authorizer, caches, known: Mutex::default(), missing: Mutex::default() }
    }

    pub fn decide(&self, question: &Attributes<'_>) -> Decision {
        if let Ok(decision) = self.authorizer.begin(self.caches, question) {
            return decision;
        }
        let question = Question::of(question);
        if let Some(decision) = self.known.lock().get(&question) {
            return decision.clone();
        }
        let mut missing = self.missing.lock();
        if !missing.contains(&question) {
            missing.push(question);
        }
        let error = "the answer of an authorization webhook is awaited".to_owned();
        Decision::Denied(Denial { error, ..Denial::default() })
    }

    /// Whether something was asked in vain. Then it is known now, and whoever asked has to ask again.
    ///
    /// What came after the first such question may have been asked for its answer, and is not looked at.
    pub async fn were_missing(&self) -> bool {
        let missing = std::mem::take(&mut *self.missing.lock());
        let Some(first) = missing.into_iter().next() else { return false };
        let decision = self.authorizer.decide(self.caches, &first.attributes()).await;
        let mut known = self.known.lock();
        known.insert(first, decision);
        known.len() <= ROUNDS_MAX
    }

    /// As [`Self::were_missing`], for questions that do not follow from each other.
    pub async fn all_were_missing(&self) -> bool {
        let missing = std::mem::take(&mut *self.missing.lock());
        if missing.is_empty() {
            return false;
        }
        let asking = missing.into_iter().map(|it| async move {
            let decision = self.authorizer.decide(self.caches, &it.attributes()).await;
            (it, decision)
        });
        let found: Vec<_> = stream::iter(asking).buffer_unordered(UNDER_WAY_MAX).collect().await;
        self.known.lock().extend(found);
        true
    }
}

/// A question that is kept.
#[derive(PartialEq, Eq, Hash)]
struct Question {
    user: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
    verb: String,
    /// Group, resource, subresource, namespace and name; or a path.
    resource: Result<[String; 5], String>,
    version: String,
    field_selector: String,
    label_selector: String,
}

impl Question {
    fn of(question: &Attributes<'_>) -> Self {
        let resource = match question.target {
            ResourceOrPath::Path(path) => Err(path.to_owned()),
            ResourceOrPath::Resource { group, resource, subresource, namespace, name } => {
                Ok([group, resource, subresource, namespace, name].map(str::to_owned))
            }
        };
        Self {
            user: question.user.to_owned(),
            uid: question.uid.to_owned(),
            groups: question.groups.to_owned(),
            extra: question.extra.clone(),
            verb: question.verb.to_owned(),
            resource,
            version: question.version.to_owned(),
            field_selector: question.field_selector.to_owned(),
            label_selector: question.label_selector.to_owned(),
        }
    }

    fn attributes(&self) -> Attributes<'_> {
        let target = match &self.resource {
            Err(path) => ResourceOrPath::Path(path),
            Ok([group, resource, subresource, namespace, name]) => {
                ResourceOrPath::Resource { group, resource, subresource, namespace, name }
            }
        };
        Attributes {
            user: &self.user,
            uid: &self.uid,
            groups: &self.groups,
            extra: &self.extra,
            verb: &self.verb,
            target,
            version: &self.version,
            field_selector: &self.field_selector,
            label_selector: &self.label_selector,
        }
    }
}
