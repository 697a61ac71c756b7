//! Which level counts in a namespace, and in which version: its `pod-security.kubernetes.io/` labels.

use std::fmt;

use corten_meta::Violation;
use serde_json::Value;

const PREFIX: &str = "pod-security.kubernetes.io/";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    #[default]
    Privileged,
    Baseline,
    Restricted,
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }
}

/// A minor version of Kubernetes 1, or the newest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    #[default]
    Latest,
    Minor(u32),
}

impl Version {
    pub(super) fn is_at_least(self, minor: u32) -> bool {
        match self {
            Self::Latest => true,
            Self::Minor(it) => it >= minor,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "latest" {
            return Some(Self::Latest);
        }
        let minor = text.strip_prefix("v1.")?;
        let is_plain = minor == "0" || !minor.starts_with('0');
        let digits = !minor.is_empty() && minor.bytes().all(|it| it.is_ascii_digit());
        if is_plain && digits { minor.parse().ok().map(Self::Minor) } else { None }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelVersion {
    pub level: Level,
    pub version: Version,
}

impl fmt::Display for LevelVersion {
    /// `restricted:latest`, `baseline:v1.30`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Version::Latest => write!(f, "{}:latest", self.level.as_str()),
            Version::Minor(minor) => write!(f, "{}:v1.{minor}", self.level.as_str()),
        }
    }
}

/// What a namespace wants: to refuse, to note in the audit log, to warn of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    pub enforce: LevelVersion,
    pub audit: LevelVersion,
    pub warn: LevelVersion,
}

impl Policy {
    /// The policy a namespace's labels ask for, and what is wrong with them. A level that cannot be read counts as the
    /// strictest.
    pub fn of(namespace: &Value) -> (Self, Vec<Violation>) {
        let mut violations = Vec::new();
        let mut read = |mode: &str| LevelVersion {
            level: label(namespace, mode, &mut violations, level, Level::Restricted),
            version: label(namespace, &format!("{mode}-version"), &mut violations, version, Version::Latest),
        };
        let policy = Self { enforce: read("enforce"), audit: read("audit"), warn: read("warn") };
        (policy, violations)
    }

    /// Nothing is asked of any Pod.
    pub fn is_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|it| it.level == Level::Privileged)
    }
}

fn label<T: Default>(
    namespace: &Value,
    name: &str,
    violations: &mut Vec<Violation>,
    read: fn(&str) -> Result<T, &'static str>,
    otherwise: T,
) -> T {
    let key = format!("{PREFIX}{name}");
    let Some(text) = namespace["metadata"]["labels"][&*key].as_str() else { return T::default() };
    read(text).unwrap_or_else(|detail| {
        violations.push(Violation::invalid(format!("metadata.labels[{key}]"), format!("{text:?}"), detail));
        otherwise
    })
}

fn level(text: &str) -> Result<Level, &'static str> {
    let known = [Level::Privileged, Level::Baseline, Level::Restricted].into_iter().find(|it| it.as_str() == text);
    known.ok_or("must be one of privileged, baseline, restricted")
}

fn version(text: &str) -> Result<Version, &'static str> {
    Version::parse(text).ok_or("must be \"latest\" or \"v1.x\"")
}
