//! Which resources Kubernetes advises against, and what it says to whoever uses them.

use crate::{Kind, Schema};

/// The release whose API this is; what is deprecated later is not deprecated yet.
const MINOR: u32 = 37;
/// A version that is not stable is deprecated so many releases after its first, and gone after as many again.
const LIFE: u32 = 3;

/// Group, version, plural (empty: all of the version), since which minor release, what to use instead.
const FOR_EVER: &[(&str, &str, &str, u32, &str)] =
    &[("", "v1", "componentstatuses", 19, ""), ("", "v1", "endpoints", 33, "discovery.k8s.io/v1 EndpointSlice")];

/// Group, version, plural (empty: all of the version), the minor release it came with.
const UNSTABLE: &[(&str, &str, &str, u32)] = &[
    ("admissionregistration.k8s.io", "v1alpha1", "", 32),
    ("admissionregistration.k8s.io", "v1beta1", "", 34),
    ("certificates.k8s.io", "v1beta1", "clustertrustbundles", 33),
    ("coordination.k8s.io", "v1alpha2", "", 32),
    ("coordination.k8s.io", "v1beta1", "", 33),
    ("resource.k8s.io", "v1alpha3", "devicetaintrules", 33),
    ("resource.k8s.io", "v1beta1", "", 32),
    ("resource.k8s.io", "v1beta2", "deviceclasses", 33),
    ("resource.k8s.io", "v1beta2", "resourceclaims", 33),
    ("resource.k8s.io", "v1beta2", "resourceclaimtemplates", 33),
    ("resource.k8s.io", "v1beta2", "resourceslices", 33),
];

/// What is said of a deprecated resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deprecation {
    /// The text of the warning.
    pub warning: String,
    /// `1.38`: the release that does not have it any more. Empty: none is named.
    pub removed_release: String,
}

/// `None` where the resource is not deprecated.
pub fn deprecation(kind: &Kind) -> Option<Deprecation> {
    let resource = &kind.resource;
    let for_ever = |warning| Deprecation { warning, removed_release: String::new() };
    if let Schema::Structural(schema) = &kind.schema {
        return schema.deprecation.clone().map(for_ever);
    }
    let is_it = |group: &str, version: &str, plural: &str| {
        resource.group == group && resource.version == version && (plural.is_empty() || resource.plural == plural)
    };
    let what = |since: u32| format!("{} {} is deprecated in v1.{since}+", resource.api_version(), resource.kind);
    if let Some((_, _, _, since, instead)) = FOR_EVER.iter().find(|it| is_it(it.0, it.1, it.2)) {
        let hint = if instead.is_empty() { String::new() } else { format!("; use {instead}") };
        return Some(for_ever(what(*since) + &hint));
    }
    let (_, _, _, introduced) = UNSTABLE.iter().find(|it| is_it(it.0, it.1, it.2))?;
    let since = introduced + LIFE;
    let removed_release = format!("1.{}", since + LIFE);
    let warning = what(since) + &format!(", unavailable in v{removed_release}+");
    (since <= MINOR).then_some(Deprecation { warning, removed_release })
}
