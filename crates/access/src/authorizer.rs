//! Answers access questions: asks one authorizer after another until one decides. RBAC is an index that is made anew only when one of
//! its objects has changed.
//!
//! Where nobody outside has to be asked, an answer takes no await and no allocation.

use std::sync::Arc;

use corten_api::resources::{CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES};
use corten_cacher::{
    apart::apart,
    derived::{Derived, Made},
    watch_cache::{Caches, ResourceCache, Snapshot},
};
use corten_meta::{Key, Resource};
use parking_lot::Mutex;

use crate::{
    authorization::{Authority, Authorization, Chain, Opinion, Unasked, Verdict},
    node::NodeAuthorizer,
    question::{Attributes, Decision, Denial},
    rbac::{Compiler, Index, Objects},
};

static SOURCES: [Resource; 4] = [ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS];

/// Who is asked, the newest index of RBAC, and how the next one is made.
pub struct Authorizer {
    authorization: Arc<Authorization>,
    compiled: Derived<Index, 4>,
    compiler: Mutex<Compiler>,
    nodes: NodeAuthorizer,
}

/// An index of what was stored at one moment.
pub type Compiled = Made<Index, 4>;

/// A question on its way, whose next authorizer is a webhook that has not answered it yet.
pub(crate) struct Pending {
    chain: Arc<Chain>,
    /// The place of the webhook.
    at: usize,
    unasked: Unasked,
    denial: Denial,
}

impl Authorizer {
    pub(crate) fn new(authorization: Arc<Authorization>) -> Self {
        Self {
            authorization,
            compiled: Derived::new(Index::default()),
            compiler: Mutex::default(),
            nodes: NodeAuthorizer::default(),
        }
    }

    pub(crate) fn authorization(&self) -> &Arc<Authorization> {
        &self.authorization
    }

    /// Whom a review of rules has to leave out, since they cannot list what somebody may do; and whether everybody may do everything.
    pub(crate) fn unlisted(&self, is_node: bool) -> Unlisted {
        let mut unlisted = Unlisted::default();
        for link in &self.authorization.chain().links {
            match link.authority() {
                Authority::Node if is_node => {
                    unlisted.errors.push("node authorizer does not support user rule resolution");
                }
                Authority::Webhook(_) => {
                    unlisted.errors.push("webhook authorizer does not support user rule resolution");
                }
                Authority::All(verdict) if verdict.opinion == Opinion::Allow => unlisted.allows_all = true,
                Authority::Rbac => unlisted.has_rbac = true,
                Authority::Node | Authority::All(_) => {}
            }
        }
        unlisted
    }

    /// The decision, where nobody outside has to be asked for it.
    pub(crate) fn begin(&self, caches: &Caches, question: &Attributes<'_>) -> Result<Decision, Pending> {
        // Before all others, whatever the configuration says (`authorizerfactory.NewPrivilegedGroups`): the way back in.
        if question.is_master() {
            return Ok(Decision::Allowed(None));
        }
        let chain = self.authorization.chain();
        self.go_on(caches, question, &chain, 0, Denial::default())
    }

    pub(crate) async fn decide(&self, caches: &Caches, question: &Attributes<'_>) -> Decision {
        match self.begin(caches, question) {
            Ok(decision) => decision,
            // Boxed: who asks no webhook does not carry room for it.
            Err(pending) => Box::pin(self.finish(caches, question, pending)).await,
        }
    }

    /// Asks the webhook that the question waits for, and whoever comes after it.
    async fn finish(&self, caches: &Caches, question: &Attributes<'_>, pending: Pending) -> Decision {
        let mut pending = pending;
        loop {
            let Pending { chain, at, unasked, mut denial } = pending;
            let link = &chain.links[at];
            let Authority::Webhook(webhook) = link.authority() else { return Decision::Denied(denial) };
            let verdict = webhook.ask(unasked).await;
            link.count(verdict.opinion);
            if let Some(decision) = settled(&mut denial, verdict) {
                return decision;
            }
            match self.go_on(caches, question, &chain, at + 1, denial) {
                Ok(decision) => return decision,
                Err(next) => pending = next,
            }
        }
    }

    fn go_on(
        &self,
        caches: &Caches,
        question: &Attributes<'_>,
        chain: &Arc<Chain>,
        from: usize,
        mut denial: Denial,
    ) -> Result<Decision, Pending> {
        for (at, link) in chain.links.iter().enumerate().skip(from) {
            let verdict = match link.authority() {
                Authority::Node => match self.nodes.decide(caches, question) {
                    None => continue,
                    Some(Ok(())) => Verdict::of(Opinion::Allow),
                    Some(Err(reason)) => Verdict { reason, ..Verdict::of(Opinion::None) },
                },
                Authority::Rbac => match by_roles(&self.compiled(caches), question) {
                    allowed @ Decision::Allowed(_) => {
                        link.count(Opinion::Allow);
                        return Ok(allowed);
                    }
                    Decision::Denied(it) => Verdict { reason: it.reason, ..Verdict::of(Opinion::None) },
                },
                Authority::All(verdict) => verdict.clone(),
                Authority::Webhook(webhook) => match webhook.known(question) {
                    Ok(verdict) => verdict,
                    Err(unasked) => return Err(Pending { chain: chain.clone(), at, unasked, denial }),
                },
            };
            link.count(verdict.opinion);
            if let Some(decision) = settled(&mut denial, verdict) {
                return Ok(decision);
            }
        }
        Ok(Decision::Denied(denial))
    }

    /// What the index is made of.
    pub fn sources(caches: &Caches) -> impl Iterator<Item = &ResourceCache> {
        SOURCES.iter().map(|it| source(caches, it))
    }

    /// The index of what the caches hold now.
    pub fn compiled(&self, caches: &Caches) -> Arc<Compiled> {
        let look = || {
            let snapshots = SOURCES.each_ref().map(|it| snapshot(caches, it));
            (snapshots.each_ref().map(|it| it.revision), snapshots)
        };
        let make = |_: &Index, snapshots: [Arc<Snapshot>; 4]| {
            let [roles, cluster_roles, bindings, cluster_bindings] = snapshots.each_ref().map(|it| objects(it));
            self.compiler.lock().compile(&Objects { roles, cluster_roles, bindings, cluster_bindings })
        };
        self.compiled.get(look, make, |_, _| ())
    }
}

/// Who cannot list what somebody may do.
#[derive(Debug, Default)]
pub(crate) struct Unlisted {
    /// As a review says it. Empty: what can be listed is all.
    pub(crate) errors: Vec<&'static str>,
    pub(crate) allows_all: bool,
    pub(crate) has_rbac: bool,
}

/// As `unionAuthzHandler`: who decides ends it; what the others say is put together.
fn settled(denial: &mut Denial, verdict: Verdict) -> Option<Decision> {
    let Verdict { opinion, reason, error } = verdict;
    match opinion {
        Opinion::Allow => Some(Decision::Allowed((!reason.is_empty()).then(|| reason.into()))),
        Opinion::Deny => Some(Decision::Denied(Denial { reason, is_explicit: true, error })),
        Opinion::None => {
            append(&mut denial.reason, reason, "\n");
            append(&mut denial.error, error, ", ");
            None
        }
    }
}

fn append(whole: &mut String, part: String, between: &str) {
    if whole.is_empty() {
        *whole = part;
    } else if !part.is_empty() {
        *whole += between;
        *whole += &part;
    }
}

fn source<'a>(caches: &'a Caches, resource: &Resource) -> &'a ResourceCache {
    caches.get(resource).expect("the RBAC resources are rows of the table")
}

fn snapshot(caches: &Caches, resource: &Resource) -> Arc<Snapshot> {
    source(caches, resource).snapshot()
}

fn objects(snapshot: &Snapshot) -> Vec<(Key, u64, &[u8])> {
    let one = |it: &'_ Arc<corten_cacher::watch_cache::Stored>| Key::new(it.namespace(), it.name());
    snapshot.iter().map(|it| (one(it), it.revision(), &**it.value())).collect()
}

/// Who has bound very many rules to themselves makes others wait no longer than their threads do.
fn by_roles(index: &Index, question: &Attributes<'_>) -> Decision {
    const MANY_RULES: usize = 10_000;
    if index.n_rules(question) > MANY_RULES { apart(|| index.decide(question)) } else { index.decide(question) }
}
