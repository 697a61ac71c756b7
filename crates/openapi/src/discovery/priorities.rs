//! Which groups and versions clients look at first (`apiVersionPriorities`).

/// `groupPriorityMinimum` of built-in groups.
const GROUPS: &[(&str, i64)] = &[
    ("", 18000),
    ("apps", 17800),
    ("events.k8s.io", 17750),
    ("authentication.k8s.io", 17700),
    ("authorization.k8s.io", 17600),
    ("autoscaling", 17500),
    ("batch", 17400),
    ("certificates.k8s.io", 17300),
    ("networking.k8s.io", 17200),
    ("policy", 17100),
    ("rbac.authorization.k8s.io", 17000),
    ("storage.k8s.io", 16800),
    ("apiextensions.k8s.io", 16700),
    ("admissionregistration.k8s.io", 16700),
    ("scheduling.k8s.io", 16600),
    ("coordination.k8s.io", 16500),
    ("node.k8s.io", 16300),
    ("discovery.k8s.io", 16200),
    ("flowcontrol.apiserver.k8s.io", 16100),
    ("internal.apiserver.k8s.io", 16000),
    ("resource.k8s.io", 15900),
    ("storagemigration.k8s.io", 15800),
    ("metrics.k8s.io", 100),
];
/// That of groups of custom resources, and of others that no list names.
const OTHER_GROUPS: i64 = 1000;

pub fn of_group(group: &str) -> i64 {
    GROUPS.iter().find(|it| it.0 == group).map_or(OTHER_GROUPS, |it| it.1)
}

/// `versionPriority` of a version that is served here.
pub fn of_version(group: &str, version: &str) -> i64 {
    match version {
        _ if group == "metrics.k8s.io" => 100,
        "v1" if group.is_empty() => 1,
        "v2" => 30,
        _ if version.contains("alpha") => 1,
        "v1beta2" => 12,
        _ if version.contains("beta") => 9,
        _ => 15,
    }
}

/// That of every version of a custom resource.
pub const OF_CUSTOM_VERSIONS: i64 = 100;
