//! What stands in a request and in a certificate.

use std::net::IpAddr;

use base64::{Engine, engine::general_purpose::STANDARD};
use corten_meta::Time;
use x509_parser::{
    certification_request::X509CertificationRequest,
    cri_attributes::ParsedCriAttribute,
    extensions::{GeneralName, ParsedExtension},
    oid_registry::OID_X509_EXT_SUBJECT_ALT_NAME,
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
    let user = common_name(subject)?;
    let is_node = organizations(subject)? == [NODES] && user.starts_with(NODE) && names(&request)?.is_empty();
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
    let user = common_name(subject)?;
    let is_its_own = spec.username == user && spec.groups.iter().any(|it| it == NODES);
    let node = user.strip_prefix(NODE).filter(|_| is_its_own)?;
    if organizations(subject)? != [NODES] {
        return None;
    }
    let mut serving = Serving { node: node.to_owned(), dns: Vec::new(), addresses: Vec::new() };
    for name in names(&request)? {
        match name {
            GeneralName::DNSName(name) => serving.dns.push((*name).to_owned()),
            GeneralName::IPAddress(octets) => serving.addresses.push(address(octets)?),
            _ => return None,
        }
    }
    (serving.dns.len() + serving.addresses.len() > 0).then_some(serving)
}

/// The alternative names; nothing where they cannot be read, or are asked for twice: a reader sees the first, a signer
/// perhaps the last.
fn names<'a>(request: &'a X509CertificationRequest<'_>) -> Option<&'a [GeneralName<'a>]> {
    let attributes = request.certification_request_info.attributes().iter();
    let asked = attributes.filter_map(|it| match it.parsed_attribute() {
        ParsedCriAttribute::ExtensionRequest(asked) => Some(&asked.extensions),
        _ => None,
    });
    let mut found = asked.flatten().filter(|it| it.oid == OID_X509_EXT_SUBJECT_ALT_NAME);
    let names = match (found.next(), found.next()) {
        (None, _) => return Some(&[]),
        (Some(one), None) => one,
        (Some(_), Some(_)) => return None,
    };
    match names.parsed_extension() {
        ParsedExtension::SubjectAlternativeName(names) => Some(&names.general_names),
        _ => None,
    }
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(octets).map(IpAddr::from).ok().or_else(|| <[u8; 16]>::try_from(octets).map(IpAddr::from).ok())
}

/// Nothing where one of them is no text that everybody reads alike.
fn organizations<'a>(subject: &'a X509Name<'_>) -> Option<Vec<&'a str>> {
    subject.iter_organization().map(|it| it.as_str().ok()).collect()
}

/// The only one.
fn common_name<'a>(subject: &'a X509Name<'_>) -> Option<&'a str> {
    let mut names = subject.iter_common_name();
    let first = names.next()?;
    if names.next().is_some() { None } else { first.as_str().ok() }
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
