//! All that answers questions about access, and what it reads: the caches, and the time.

use std::sync::Arc;

use corten_cacher::watch_cache::Caches;
use corten_files::RefusedFile;
use corten_meta::{Status, Time};
use corten_metrics::Registry;
use corten_routes::RequestInfo;
use corten_webhook::Clients;
use http::HeaderMap;
use serde_json::Value;
use tokio::{sync::watch, time::Instant};

use crate::{
    access_reviews,
    answers::Answers,
    authorization::{Authorization, AuthorizationSettings},
    authorizer::Authorizer,
    credential::{self, Attempted, Credential, Holder, Proof},
    identity::{Identity, Peer},
    impersonation::{Allowed, ImpersonatedUser, ImpersonationRefusal},
    measures::Measures,
    question::{Attributes, Decision},
    refusals::Refusals,
    reloads::Reloads,
    remote::Unanswering,
    rights_changed::RightsChanged,
    tokens::{Authenticator, CachesNow, Patch, review, uses},
};

/// Tells the time; real, or the simulator's.
pub type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

pub struct Access {
    caches: Arc<Caches>,
    clock: Clock,
    authenticator: Authenticator,
    authorizer: Authorizer,
    rights_changed: Arc<RightsChanged>,
    refusals: Refusals,
    measures: Measures,
}

impl Access {
    pub fn new(
        caches: Arc<Caches>,
        clock: Clock,
        authenticator: Authenticator,
        authorization: AuthorizationSettings,
        clients: Arc<Clients>,
        registry: &Registry,
    ) -> Self {
        let authorization = Arc::new(Authorization::new(authorization, clients, registry));
        let rights_changed = Arc::new(RightsChanged::new(&caches, authorization.changes()));
        let authorizer = Authorizer::new(authorization);
        let measures = Measures::new(registry);
        authenticator.issuers().measured_by(&measures.tokens_of_issuers);
        Self { caches, clock, authenticator, authorizer, rights_changed, refusals: Refusals::default(), measures }
    }

    /// Keeps who decides up to its file until the server ends.
    pub async fn keep(self: Arc<Self>, ended: watch::Receiver<bool>) {
        let authorization = self.authorizer.authorization().clone();
        authorization.keep(ended).await;
    }

    /// Says at the Secrets of tokens on which day these were last used, until the server ends.
    pub async fn mark_used_tokens(self: Arc<Self>, patch: Box<Patch>, mut ended: watch::Receiver<bool>) {
        let marking = async {
            loop {
                for secret in self.authenticator.token_uses().next().await {
                    uses::mark(&self.look(), &secret, &*patch).await;
                }
                tokio::time::sleep(uses::PAUSE).await;
            }
        };
        tokio::select! {
            biased;
            _ = ended.wait_for(|it| *it) => {}
            () = marking => {}
        }
    }

    /// How often the configuration of authorization was read anew.
    pub fn authorization_reloads(&self) -> &Reloads {
        self.authorizer.authorization().reloads()
    }

    /// The webhooks that are asked about tokens or rights, and the issuers that are asked for keys, which gave no answer the last
    /// time; they are not asked for this.
    pub fn unanswering(&self) -> Vec<Unanswering> {
        let of_tokens = self.authenticator.unanswering();
        let of_rights = self.authorizer.authorization().unanswering();
        of_tokens.into_iter().chain(of_rights).chain(self.authenticator.issuers().unanswering()).collect()
    }

    /// The configuration files that are not used as they are now.
    pub fn refused_files(&self) -> Vec<RefusedFile> {
        let of_tokens = self.authenticator.issuers().refused();
        of_tokens.into_iter().chain(self.authorizer.authorization().refused()).collect()
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
    pub fn look(&self) -> CachesNow<'_> {
        CachesNow { caches: &self.caches, now: (self.clock)() }
    }

    /// Who sends a request.
    ///
    /// # Errors
    /// What was tried, where something is shown that proves nothing.
    pub async fn identify(&self, peer: Option<&Peer>, headers: &HeaderMap, path: &str) -> Result<Proof, Attempted> {
        let begun = Instant::now();
        credential::prepare(&self.authenticator, headers).await;
        let at = self.look();
        let found = credential::identify(&self.authenticator, &self.refusals, &at, peer, headers, path).await;
        self.measures.identified(&found, begun.elapsed(), at.now);
        found
    }

    /// The `status` of a TokenReview.
    ///
    /// # Errors
    /// 400 where there is no token to ask about.
    pub async fn review_token(&self, spec: &Value) -> Result<Value, Status> {
        self.authenticator.issuers().prepare(review::token(spec)).await;
        review::status(&self.authenticator, &self.look(), spec).await
    }

    /// The `status` of a review that asks whether somebody may do something; `asker` is whom it is about, unless it says that itself.
    ///
    /// # Errors
    /// 400 where the `spec` cannot be read.
    pub async fn review_access(&self, spec: &Value, asker: Option<&Identity>) -> Result<Value, Status> {
        access_reviews::access(&self.authorizer, &self.caches, spec, asker).await
    }

    /// The `status` of a SelfSubjectRulesReview.
    ///
    /// # Errors
    /// 400 where no namespace is named.
    pub fn review_rules(&self, spec: &Value, who: &Identity) -> Result<Value, Status> {
        access_reviews::rules(&self.authorizer, &self.caches, spec, who)
    }

    /// Who holds a credential now.
    pub async fn holder(&self, credential: &Credential, peer: Option<&Peer>, before: &Identity, path: &str) -> Holder {
        credential.holder(&self.authenticator, &self.look(), peer, before, path).await
    }

    /// Whom `who` becomes, where a right lets them.
    ///
    /// # Errors
    /// 403.
    pub async fn impersonated(
        &self,
        wanted: &ImpersonatedUser,
        info: &RequestInfo,
        who: &Identity,
    ) -> Result<Allowed, ImpersonationRefusal> {
        self.answered(|answers| wanted.allowed(answers, info, who)).await
    }

    pub async fn decide(&self, question: &Attributes<'_>) -> Decision {
        self.authorizer.decide(&self.caches, question).await
    }

    /// The same of what a request itself asks for, which is counted.
    pub async fn decide_request(&self, question: &Attributes<'_>) -> Decision {
        let begun = Instant::now();
        let decision = self.decide(question).await;
        self.measures.decided(&decision, begun.elapsed());
        decision
    }

    /// Decisions for who cannot wait for them.
    pub fn answers(&self) -> Answers<'_> {
        Answers::new(&self.authorizer, &self.caches)
    }

    /// # Errors
    /// 403, or 500 where somebody could not be asked.
    pub async fn may(&self, question: &Attributes<'_>) -> Result<(), Status> {
        match self.decide(question).await {
            Decision::Allowed(_) => Ok(()),
            Decision::Denied(denial) => Err(question.refusal(&denial)),
        }
    }

    /// What comes of thinking that takes decisions and cannot wait for them: see [`Answers`].
    pub async fn answered<T>(&self, think: impl Fn(&Answers<'_>) -> T) -> T {
        let answers = self.answers();
        loop {
            let thought = think(&answers);
            if !answers.were_missing().await {
                return thought;
            }
        }
    }
}
