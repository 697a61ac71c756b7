//! What a ClusterTrustBundle says.

use std::collections::BTreeMap;

/// Certificates that everybody may trust, and whose they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustBundle {
    /// `spec.signerName`; empty: nobody's.
    pub signer: String,
    pub labels: BTreeMap<String, String>,
    /// `spec.trustBundle`: certificates in PEM.
    pub certificates: String,
}
