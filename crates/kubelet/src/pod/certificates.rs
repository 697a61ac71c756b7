//! Asks for the certificates of a pod, and anew when their signer says that it is time.
//!
//! As in upstream's `podcertificate.IssuingManager`: nothing is kept over a restart of the kubelet, which then asks anew.

use std::time::Duration;

use corten_meta::Time;
use corten_reconcile::EventType::Warning;

use crate::{
    ApiEffect, ApiFailure, CertificateAnswer, CertificateAsked, CertificatePlace, PodRef,
    backoff::pause,
    pod::{context::Context, machine::PodMachine},
    spec::{
        pem,
        pod::spec_of,
        pod_certificates::{Issued, PendingCertificate, Refusal, Slot, wishes},
    },
};

const RETRY_SECONDS_MAX: u64 = 120;
/// Certificates that were issued at one time are not all asked for anew at one time.
const JITTER_SECONDS: u64 = 300;
/// So long after it should have been replaced a certificate is said to be overdue.
const OVERDUE: Duration = Duration::from_secs(600);
/// A signer that answers sooner is not worth an event.
const PATIENCE: Duration = Duration::from_secs(10);

impl PodMachine {
    /// Asks for the certificates that are missing or grow old, and tells of those that should have come.
    pub(crate) fn fetch_certificates(&mut self, cx: &mut Context<'_>) {
        let account = spec_of(&self.pod).service_account_name.clone().unwrap_or_default();
        for (place, wish) in wishes(&self.pod) {
            let slot = self.certificates.slots.entry(place.clone()).or_default();
            slot.tell(&self.who, &place, cx);
            let refresh_at = slot.credential.as_ref().map(|it| it.refresh_at);
            let is_settled = slot.in_flight || slot.asked.is_some() || slot.refusal.is_some();
            if is_settled || !cx.is_due(refresh_at) || !cx.is_due(slot.retry_at) {
                continue;
            }
            slot.in_flight = true;
            cx.api(ApiEffect::RequestCertificate { pod: self.who.clone(), account: account.clone(), place, wish });
        }
    }

    /// A request was made, or could not be.
    pub(crate) fn certificate_asked(
        &mut self,
        place: &CertificatePlace,
        result: Result<CertificateAsked, ApiFailure>,
        cx: &mut Context<'_>,
    ) {
        let slot = self.certificates.slots.entry(place.clone()).or_default();
        slot.in_flight = false;
        match result {
            Ok(asked) => {
                let request = asked.request.clone();
                slot.asked = Some(PendingCertificate { it: asked, since: cx.now, is_told: false });
                slot.problem = None;
                self.heed_answer(&request, cx);
            }
            Err(failure) => slot.failed(
                match failure {
                    ApiFailure::Gone => "not found".into(),
                    ApiFailure::Conflict => "conflict".into(),
                    ApiFailure::Other(message) => message,
                },
                cx.now,
            ),
        }
    }

    /// What has become of a request; `None`: it is gone.
    pub(crate) fn certificate_answered(
        &mut self,
        request: &str,
        answer: Option<CertificateAnswer>,
        cx: &mut Context<'_>,
    ) {
        match answer {
            Some(answer) => {
                self.certificates.answers.insert(request.to_owned(), answer);
                self.heed_answer(request, cx);
            }
            None => {
                self.certificates.answers.remove(request);
                let key = format!("{}/{request}", self.who.key.namespace);
                for slot in self.certificates.slots.values_mut().filter(|it| it.waits_for(request)) {
                    slot.asked = None;
                    slot.failed(format!("PodCertificateRequest {key:?} appears to have been deleted"), cx.now);
                }
            }
        }
    }

    fn heed_answer(&mut self, request: &str, cx: &mut Context<'_>) {
        let certificates = &mut self.certificates;
        let Some(answer) = certificates.answers.get(request) else { return };
        let Some(slot) = certificates.slots.values_mut().find(|it| it.waits_for(request)) else { return };
        let name = format!("{}/{request}", self.who.key.namespace);
        let (reason, outcome, why, message) = match answer {
            CertificateAnswer::Pending => return,
            CertificateAnswer::Issued { chain, begin_refresh_at, not_after } => {
                if let Some(asked) = slot.asked.take() {
                    let chain = pem::written(&pem::certificates(chain).collect::<Vec<_>>());
                    slot.credential = Some(Issued {
                        key: asked.it.key,
                        chain,
                        refresh_at: begin_refresh_at.after(jitter(&self.who.uid, request)),
                        not_after: *not_after,
                        is_told_overdue: false,
                        is_told_expired: false,
                    });
                }
                (slot.failures, slot.retry_at) = (0, None);
                certificates.answers.remove(request);
                return;
            }
            CertificateAnswer::Denied { reason, message } => ("Denied", "was denied", reason, message),
            CertificateAnswer::Failed { reason, message } => ("Failed", "failed", reason, message),
        };
        let told = format!("reason={why:?} message={message:?}");
        let event = format!("PodCertificateRequest {name} {outcome}, reason={why:?}, message={message:?}");
        let message = format!("PodCertificateRequest was permanently {}: {told}", reason.to_lowercase());
        slot.refusal = Some(Refusal { message, is_failure: reason == "Failed" });
        slot.asked = None;
        certificates.answers.remove(request);
        cx.event(&self.who, "", Warning, reason, event);
    }
}

impl Slot {
    fn waits_for(&self, request: &str) -> bool {
        self.asked.as_ref().is_some_and(|it| it.it.request == request)
    }

    fn failed(&mut self, problem: String, now: Time) {
        self.failures += 1;
        self.retry_at = Some(now.after(pause(self.failures, RETRY_SECONDS_MAX)));
        self.problem = Some(problem);
    }

    /// Tells once of what should have come.
    fn tell(&mut self, who: &PodRef, place: &CertificatePlace, cx: &mut Context<'_>) {
        if let Some(it) = &mut self.credential {
            if !it.is_told_overdue && cx.is_due(Some(it.refresh_at.after(OVERDUE))) {
                it.is_told_overdue = true;
                cx.event(who, "", Warning, "CertificateOverdueForRefresh", "PodCertificate refresh overdue".into());
            }
            if !it.is_told_expired && cx.is_due(Some(it.not_after)) {
                it.is_told_expired = true;
                cx.event(who, "", Warning, "CertificateExpired", "PodCertificate expired".into());
            }
        } else if let Some(it) = self.asked.as_mut().filter(|it| !it.is_told)
            && cx.is_due(Some(it.since.after(PATIENCE)))
        {
            it.is_told = true;
            let volume = &place.volume;
            let message =
                format!("MountVolume.SetUp failed for volume {volume:?} : credential bundle is not issued yet");
            cx.event(who, "", Warning, "FailedMount", message);
        }
    }
}

/// Spread over five minutes by what names the request (FNV-1a): a mind draws no numbers.
fn jitter(pod: &str, request: &str) -> Duration {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = pod.bytes().chain(request.bytes()).fold(0xcbf2_9ce4_8422_2325, step);
    Duration::from_secs(hash % JITTER_SECONDS)
}
