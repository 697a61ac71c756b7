//! The ClusterTrustBundles that pods have projected: found by name, or by signer and labels, and put together (KEP-3257).
//!
//! Each certificate is there once, in an order that means nothing, and without what stands around it
//! (`InformerManager.normalizeTrustAnchors`).

use std::collections::{BTreeMap, BTreeSet};

use corten_api::core::v1::{ClusterTrustBundleProjection, Pod};
use corten_meta::{LabelSelector, LabelSelectorRequirement, Selector};

use crate::{
    TrustBundle,
    spec::{
        pem::{self, Certificate},
        pod::spec_of,
    },
};

/// Every ClusterTrustBundle of the cluster.
#[derive(Debug, Default)]
pub(crate) struct TrustBundles {
    /// Every one has been told once.
    pub(crate) are_known: bool,
    bundles: BTreeMap<String, ReadBundle>,
}

#[derive(Debug)]
struct ReadBundle {
    signer: String,
    labels: BTreeMap<String, String>,
    certificates: BTreeSet<Certificate>,
}

pub(crate) enum Trusted {
    /// As PEM.
    Found(String),
    Missing(String),
    Unread,
}

impl TrustBundles {
    pub(crate) fn update(&mut self, name: String, bundle: Option<TrustBundle>) {
        let known = |TrustBundle { signer, labels, certificates }: TrustBundle| ReadBundle {
            signer,
            labels,
            certificates: pem::certificates(&certificates).collect(),
        };
        match bundle {
            Some(bundle) => self.bundles.insert(name, known(bundle)),
            None => self.bundles.remove(&name),
        };
    }

    pub(crate) fn lookup(&self, wanted: &ClusterTrustBundleProjection) -> Trusted {
        if !self.are_known {
            return Trusted::Unread;
        }
        if let Some(name) = wanted.name.as_deref().filter(|it| !it.is_empty()) {
            return match self.bundles.get(name) {
                Some(it) => Trusted::Found(pem::written(&it.certificates)),
                None => Trusted::Missing(format!("clustertrustbundles.certificates.k8s.io {name:?} not found")),
            };
        }
        let signer = wanted.signer_name.as_deref().unwrap_or_default();
        // Absent it selects nothing; empty, everything.
        let selector = wanted.label_selector.as_ref().map(selector);
        let fits = |it: &&ReadBundle| it.signer == signer && selector.as_ref().is_some_and(|by| by.matches(&it.labels));
        let found: Vec<&ReadBundle> = self.bundles.values().filter(fits).collect();
        if found.is_empty() {
            return Trusted::Missing(
                "combination of signerName and labelSelector matched zero ClusterTrustBundles".into(),
            );
        }
        let certificates: BTreeSet<&Certificate> = found.into_iter().flat_map(|it| &it.certificates).collect();
        Trusted::Found(pem::written(certificates))
    }
}

/// Does the pod have such bundles projected?
pub(crate) fn are_projected(pod: &Pod) -> bool {
    let volumes = spec_of(pod).volumes.iter().flatten().filter_map(|it| it.projected.as_ref());
    volumes.flat_map(|it| it.sources.iter().flatten()).any(|it| it.cluster_trust_bundle.is_some())
}

fn selector(selector: &corten_api::apimachinery::pkg::apis::meta::v1::LabelSelector) -> Selector {
    let expressions = selector.match_expressions.iter().flatten().map(|it| LabelSelectorRequirement {
        key: it.key.clone(),
        operator: it.operator.clone(),
        values: it.values.clone().unwrap_or_default(),
    });
    let match_labels = selector.match_labels.clone().unwrap_or_default();
    LabelSelector { match_labels, match_expressions: expressions.collect() }.selector()
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use serde_json::{Value, json};

    use super::*;

    fn block(text: &str) -> String {
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", STANDARD.encode(text))
    }

    #[test]
    fn bundles_are_found_and_put_together() {
        let mut bundles = TrustBundles::default();
        let of = |bundles: &TrustBundles, wanted: &Value| match bundles
            .lookup(&serde_json::from_value(wanted.clone()).expect("a projection"))
        {
            Trusted::Found(it) => it,
            Trusted::Missing(it) => it,
            Trusted::Unread => "unread".to_owned(),
        };
        assert_eq!(of(&bundles, &json!({"name": "a", "path": "p"})), "unread");
        bundles.are_known = true;
        for (name, signer, stage, certificates) in [
            ("a", "", "", format!("# ours\n{}{}", block("two"), block("one"))),
            ("x:1", "x/s", "live", format!("{}{}", block("three"), block("two"))),
            ("x:2", "x/s", "canary", block("two").replace('\n', "\r\n")),
        ] {
            let labels = BTreeMap::from([("stage".to_owned(), stage.to_owned())]);
            bundles.update(name.into(), Some(TrustBundle { signer: signer.into(), labels, certificates }));
        }
        let none = "combination of signerName and labelSelector matched zero ClusterTrustBundles".to_owned();
        for (wanted, expected) in [
            (json!({"name": "a", "path": "p"}), format!("{}{}", block("one"), block("two"))),
            (json!({"name": "b", "path": "p"}), "clustertrustbundles.certificates.k8s.io \"b\" not found".to_owned()),
            (
                json!({"signerName": "x/s", "labelSelector": {}, "path": "p"}),
                format!("{}{}", block("three"), block("two")),
            ),
            (
                json!({"signerName": "x/s", "labelSelector": {"matchLabels": {"stage": "canary"}}, "path": "p"}),
                block("two"),
            ),
            (
                json!({"signerName": "x/s", "path": "p",
                    "labelSelector": {"matchExpressions": [{"key": "stage", "operator": "NotIn", "values": ["live"]}]}}),
                block("two"),
            ),
            (json!({"signerName": "x/s", "path": "p"}), none.clone()),
            (json!({"signerName": "x/t", "labelSelector": {}, "path": "p"}), none),
        ] {
            assert_eq!(of(&bundles, &wanted), expected, "{wanted}");
        }
        bundles.update("a".into(), None);
        assert!(of(&bundles, &json!({"name": "a", "path": "p"})).ends_with("not found"));
    }
}
