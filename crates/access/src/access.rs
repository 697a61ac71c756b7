//! All that answers questions about access, and what it reads: the caches, and the time.

use std::sync::Arc;

use corten_cacher::watch_cache::Caches;
use corten_meta::{Status, Time};
use corten_routes::RequestInfo;
use http::HeaderMap;
use serde_json::Value;

use crate::{
    authorizer::Authorizer,
    credential::{self, Attempted, Credential, Proof},
    identity::{Identity, Peer},
    impersonation::{Allowed, ImpersonatedUser},
    question::{Attributes, Decision},
    rights_changed::RightsChanged,
    tokens::{Authenticator, Look, review},
};

/// Tells the time; real, or the simulator's.
pub type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

pub struct Access {
    caches: Arc<Caches>,
    clock: Clock,
    authenticator: Authenticator,
    authorizer: Authorizer,
    rights_changed: Arc<RightsChanged>,
}

impl Access {
    pub fn new(caches: Arc<Caches>, clock: Clock, authenticator: Authenticator) -> Self {
        let rights_changed = Arc::new(RightsChanged::new(&caches));
        Self { caches, clock, authenticator, authorizer: Authorizer::new(), rights_changed }
    }

    pub fn authenticator(&self) -> &Authenticator {
        &self.authenticator
    }

    pub fn authorizer(&self) -> &Authorizer {
        &self.authorizer
    }

    /// Tells what goes on that rights may have ended.
    pub fn rights_changed(&self) -> &Arc<RightsChanged> {
        &self.rights_changed
    }

    /// What the caches hold now.
    pub fn look(&self) -> Look<'_> {
        Look { caches: &self.caches, now: (self.clock)() }
    }

    /// Who sends a request.
    ///
    /// # Errors
    /// What was tried, where something is shown that proves nothing.
    pub async fn identify(&self, peer: Option<&Peer>, headers: &HeaderMap, path: &str) -> Result<Proof, Attempted> {
        credential::prepare(&self.authenticator, headers).await;
        credential::identify(&self.authenticator, &self.look(), peer, headers, path)
    }

    /// The `status` of a TokenReview.
    ///
    /// # Errors
    /// 400 where there is no token to ask about.
    pub async fn review_token(&self, spec: &Value) -> Result<Value, Status> {
        self.authenticator.issuers().prepare(review::token(spec)).await;
        review::status(&self.authenticator, &self.look(), spec)
    }

    /// Who holds a credential now. `None` where it proves nothing any more.
    pub fn holder(
        &self,
        credential: &Credential,
        peer: Option<&Peer>,
        before: &Identity,
        path: &str,
    ) -> Option<Identity> {
        credential.holder(&self.authenticator, &self.look(), peer, before, path)
    }

    /// Whom `who` becomes, where a right lets them.
    ///
    /// # Errors
    /// 403.
    pub fn impersonated(
        &self,
        wanted: &ImpersonatedUser,
        info: &RequestInfo,
        who: &Identity,
    ) -> Result<Allowed, Status> {
        wanted.allowed(&self.authorizer, &self.caches, info, who)
    }

    pub fn decide(&self, question: &Attributes<'_>) -> Decision {
        self.authorizer.decide(&self.caches, question)
    }

    /// # Errors
    /// 403.
    pub fn may(&self, question: &Attributes<'_>) -> Result<(), Status> {
        match self.decide(question) {
            Decision::Allowed(_) => Ok(()),
            Decision::Denied(reason) => Err(question.forbidden(&reason)),
        }
    }
}
