//! Claims for devices (dynamic resource allocation): what the API says of one, and what its drivers make of it.

use serde::{Deserialize, Serialize};

/// A claim of a pod, by the name it has in the pod and its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClaimName {
    pub in_pod: String,
    pub claim: String,
}

/// What the API has of a claim that was given devices for this pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReservedClaim {
    pub in_pod: String,
    pub claim: String,
    pub uid: String,
    pub results: Vec<GivenDevice>,
    pub users: Vec<ClaimUser>,
}

/// A container that names a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimUser {
    pub container: String,
    /// Only what this request was given.
    pub request: Option<String>,
}

/// One device of a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GivenDevice {
    /// `REQUEST`, or `REQUEST/SUBREQUEST`.
    pub request: String,
    pub driver: String,
    pub pool: String,
    pub device: String,
}

/// What drivers made of a claim, for the containers that name it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PreparedClaim {
    pub in_pod: String,
    pub devices: Vec<PreparedDevice>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PreparedDevice {
    /// The requests it is for; none: all.
    pub requests: Vec<String>,
    pub driver: String,
    pub pool: String,
    pub device: String,
    pub cdi_devices: Vec<String>,
}

impl PreparedClaim {
    /// What a container has that names the claim, or one request of it.
    pub fn devices_for(&self, request: Option<&str>) -> impl Iterator<Item = &PreparedDevice> {
        let wanted = request.filter(|it| !it.is_empty());
        let is_for = move |it: &&PreparedDevice| {
            let is_it = |of: &String| Some(of.split('/').next().unwrap_or(of)) == wanted || Some(of.as_str()) == wanted;
            wanted.is_none() || it.requests.is_empty() || it.requests.iter().any(is_it)
        };
        self.devices.iter().filter(is_for)
    }
}
