//! What stands in a request and in a certificate.

use std::net::IpAddr;

use base64::{Engine, engine::general_purpose::STANDARD};
use corten_meta::Time;
use x509_parser::{
    certification_request::X509CertificationRequest,
    extensions::{GeneralName, ParsedExtension},
    pem::Pem,
    prelude::{FromDer, X509Certificate},
    x509::X509Name,
};

use super::Spec;

const SERVING: &str = "kubernetes.io/kubelet-serving";
const SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const NODE: &str = "system:node:";
const NODES: &str = "system:nodes";

/// The user a kubelet would be with the certificate it asks for; nothing where this is not what a kubelet asks for.
pub(super) fn of_kubelet(spec: &Spec) -> Option<String> {
    let mut usages: Vec<&str> = spec.usages.iter().map(|it| &**it).filter(|it| *it != "key encipherment").collect();
    usages.sort_unstable();
    if spec.signer_name != SIGNER || usages != ["client auth", "digital signature"] {
        return None;
    }
    let pem = pem(&spec.request)?;
    let (_, request) = X509CertificationRequest::from_der(&pem.contents).ok()?;
    let subject = &request.certification_request_info.subject;
    let has_other_names = request
        .requested_extensions()
        .into_iter()
        .flatten()
        .any(|it| matches!(it, ParsedExtension::SubjectAlternativeName(names) if !names.general_names.is_empty()));
    let user = single(subject.iter_common_name().filter_map(|it| it.as_str().ok()))?;
    let is_node = organizations(subject) == [NODES] && user.starts_with(NODE) && !has_other_names;
    is_node.then(|| user.to_owned())
}

/// A certificate that a kubelet asks for to serve with, and the names that shall stand in it.
pub(super) struct Serving {
    pub(super) node: String,
    pub(super) dns: Vec<String>,
    pub(super) addresses: Vec<IpAddr>,
}

/// What a node asks for itself; nothing where anything else is asked, or by anybody else.
pub(super) fn of_server(spec: &Spec) -> Option<Serving> {
    let mut usages: Vec<&str> = spec.usages.iter().map(|it| &**it).filter(|it| *it != "key encipherment").collect();
    usages.sort_unstable();
    if spec.signer_name != SERVING || usages != ["digital signature", "server auth"] {
        return None;
    }
    let pem = pem(&spec.request)?;
    let (_, request) = X509CertificationRequest::from_der(&pem.contents).ok()?;
    let subject = &request.certification_request_info.subject;
    let user = single(subject.iter_common_name().filter_map(|it| it.as_str().ok()))?;
    let is_its_own = spec.username == user && spec.groups.iter().any(|it| it == NODES);
    let node = user.strip_prefix(NODE).filter(|_| is_its_own && organizations(subject) == [NODES])?;
    let mut serving = Serving { node: node.to_owned(), dns: Vec::new(), addresses: Vec::new() };
    for extension in request.requested_extensions().into_iter().flatten() {
        let ParsedExtension::SubjectAlternativeName(names) = extension else { continue };
        for name in &names.general_names {
            match name {
                GeneralName::DNSName(name) => serving.dns.push((*name).to_owned()),
                GeneralName::IPAddress(octets) => serving.addresses.push(address(octets)?),
                _ => return None,
            }
        }
    }
    (serving.dns.len() + serving.addresses.len() > 0).then_some(serving)
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(octets).map(IpAddr::from).ok().or_else(|| <[u8; 16]>::try_from(octets).map(IpAddr::from).ok())
}

fn organizations<'a>(subject: &'a X509Name<'_>) -> Vec<&'a str> {
    subject.iter_organization().filter_map(|it| it.as_str().ok()).collect()
}

fn single<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next();
    if items.next().is_some() { None } else { first }
}

/// The end of the first certificate.
pub(super) fn not_after(base64: &str) -> Option<Time> {
    let pem = pem(base64)?;
    let (_, certificate) = X509Certificate::from_der(&pem.contents).ok()?;
    Some(Time::from_unix_seconds(certificate.validity().not_after.timestamp()))
}

fn pem(base64: &str) -> Option<Pem> {
    let text = STANDARD.decode(base64).ok()?;
    Pem::iter_from_buffer(&text).next()?.ok()
}
