//! Pods that wait for a certificate of their own, or are refused it: which signer, and who runs it.

use super::case::{Advice, Case};
use crate::why::{
    command::kubectl,
    fields::{items, text},
};

pub(super) fn of(case: &Case<'_>) -> Advice {
    let signers = signers(case);
    let volumes = items(case.object, "/spec/volumes");
    let (subject, message) = (&case.at.subject, &case.wait.message);
    match &*case.wait.reason {
        "CertificatePending" => {
            let waits = message.split("PodCertificateRequest ").nth(1).and_then(|it| it.split(' ').next());
            let request = waits.and_then(|it| it.rsplit('/').next()).unwrap_or_default();
            let signer = message.rsplit("the signer ").next().unwrap_or(&signers);
            Advice::run(kubectl(case.namespace, &["describe", "podcertificaterequest", request]))
                .headline(format!("{subject} waits for a certificate that {signer} has not signed"))
                .hint("the cluster brings no signer for certificates of Pods: a controller that somebody installed signs them")
                .who(format!("whoever runs the signer {signer}"))
        }
        "CertificateDenied" => Advice::run(case.edit())
            .headline(format!("{subject} is refused a certificate by {signers}: {}", said(message)))
            .hints(key_types(volumes).map(|it| format!("it asks for a key of type {it}")))
            .hint("a decision is not taken back: a new Pod asks anew"),
        _ => Advice::run(kubectl(case.namespace, &["get", "podcertificaterequests"]))
            .headline(format!("{subject} has no certificate: {signers} could not sign: {}", said(message)))
            .hint("it is not asked again for this Pod: a new one asks anew")
            .who(format!("whoever runs the signer {signers}")),
    }
}

/// What the signer said.
fn said(message: &str) -> &str {
    message.split_once("was permanently ").map_or(message, |it| it.1)
}

fn signers(case: &Case<'_>) -> String {
    let sources = items(case.object, "/spec/volumes").iter().flat_map(|it| items(it, "/projected/sources"));
    let mut names: Vec<&str> =
        sources.map(|it| text(it, "/podCertificate/signerName")).filter(|it| !it.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

fn key_types(volumes: &[serde_json::Value]) -> Option<String> {
    let sources = volumes.iter().flat_map(|it| items(it, "/projected/sources"));
    let types: Vec<&str> = sources.map(|it| text(it, "/podCertificate/keyType")).filter(|it| !it.is_empty()).collect();
    (!types.is_empty()).then(|| types.join(", "))
}
