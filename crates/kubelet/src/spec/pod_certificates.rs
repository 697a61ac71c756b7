//! The certificates that a pod has projected (KEP-4317): for each place a key that is made here, and the chain that a signer
//! gives for it.

use std::collections::BTreeMap;

use corten_api::core::v1::Pod;
use corten_meta::Time;

use crate::{CertificateAnswer, CertificateAsked, CertificatePlace, CertificateWish, PrivateKey, spec::pod::spec_of};

#[derive(Debug, Default)]
pub(crate) struct Certificates {
    pub(crate) slots: BTreeMap<CertificatePlace, Slot>,
    /// What is said of requests for this pod, by their names: that may come before it is known who asked.
    pub(crate) answers: BTreeMap<String, CertificateAnswer>,
}

#[derive(Debug, Default)]
pub(crate) struct Slot {
    pub(crate) credential: Option<Issued>,
    pub(crate) asked: Option<PendingCertificate>,
    /// A request is being made.
    pub(crate) in_flight: bool,
    pub(crate) failures: u32,
    pub(crate) retry_at: Option<Time>,
    /// Why no request could be made.
    pub(crate) problem: Option<String>,
    /// The signer has said no, and that is final; the pod that has a certificate keeps it.
    pub(crate) refusal: Option<Refusal>,
}

#[derive(Debug)]
pub(crate) struct Issued {
    pub(crate) key: PrivateKey,
    /// PEM, and nothing around its blocks.
    pub(crate) chain: String,
    pub(crate) refresh_at: Time,
    pub(crate) not_after: Time,
    pub(crate) is_told_overdue: bool,
    pub(crate) is_told_expired: bool,
}

#[derive(Debug)]
pub(crate) struct PendingCertificate {
    pub(crate) it: CertificateAsked,
    pub(crate) since: Time,
    pub(crate) is_told: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// Why the volume cannot be made, in the words of `podcertificate.IssuingManager`.
    pub(crate) message: String,
    /// A signer that could not, not one that would not.
    pub(crate) is_failure: bool,
}

pub(crate) enum Certified<'a> {
    Issued(&'a Issued),
    Asked,
    /// The request of this name waits for its signer.
    Waits(&'a str),
    Failed(&'a str),
    Refused(&'a Refusal),
}

impl Certificates {
    pub(crate) fn lookup(&self, place: &CertificatePlace) -> Certified<'_> {
        let Some(slot) = self.slots.get(place) else { return Certified::Asked };
        match slot {
            Slot { credential: Some(it), .. } => Certified::Issued(it),
            Slot { refusal: Some(it), .. } => Certified::Refused(it),
            Slot { asked: Some(it), .. } => Certified::Waits(&it.it.request),
            Slot { problem: Some(it), .. } => Certified::Failed(it),
            _ => Certified::Asked,
        }
    }

    /// Does it matter to this pod what becomes of the request?
    pub(crate) fn knows(&self, request: &str) -> bool {
        self.answers.contains_key(request)
            || self.slots.values().any(|it| it.asked.as_ref().is_some_and(|it| it.it.request == request))
    }
}

/// Every certificate that the pod's volumes name, and where.
pub(crate) fn wishes(pod: &Pod) -> Vec<(CertificatePlace, CertificateWish)> {
    let mut wishes = Vec::new();
    for volume in spec_of(pod).volumes.iter().flatten() {
        let sources = volume.projected.iter().flat_map(|it| it.sources.iter().flatten()).enumerate();
        for (source, it) in sources.filter_map(|(at, it)| Some((at, it.pod_certificate.as_ref()?))) {
            let place = CertificatePlace { volume: volume.name.clone(), source };
            let wish = CertificateWish {
                signer: it.signer_name.clone(),
                key_type: it.key_type.clone(),
                max_seconds: it.max_expiration_seconds,
                annotations: it.user_annotations.clone().unwrap_or_default(),
            };
            wishes.push((place, wish));
        }
    }
    wishes
}
