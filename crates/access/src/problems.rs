//! What is wrong with a configuration, in the words of upstream's `field` errors.

use corten_meta::aggregate;

/// Why a configuration is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

/// Why a file is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("cannot read the configuration")]
    Read(#[from] std::io::Error),
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl LoadError {
    /// As a log tells it.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Read(error) => error.to_string(),
            Self::Config(error) => error.0.clone(),
        }
    }
}

#[derive(Default)]
pub(crate) struct Problems(Vec<String>);

impl Problems {
    pub(crate) fn required(&mut self, path: &str, detail: &str) {
        let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
        self.0.push(format!("{path}: Required value{detail}"));
    }

    pub(crate) fn invalid(&mut self, path: &str, value: &str, detail: &str) {
        self.0.push(format!("{path}: Invalid value: {value:?}: {detail}"));
    }

    pub(crate) fn not_supported(&mut self, path: &str, value: &str, supported: &[&str]) {
        let supported: Vec<String> = supported.iter().map(|it| format!("{it:?}")).collect();
        self.0.push(format!("{path}: Unsupported value: {value:?}: supported values: {}", supported.join(", ")));
    }

    pub(crate) fn duplicate(&mut self, path: &str, value: &str) {
        self.0.push(format!("{path}: Duplicate value: {value:?}"));
    }

    pub(crate) fn too_many(&mut self, path: &str, n: usize, max: usize) {
        self.0.push(format!("{path}: Too many: {n}: must have at most {max} items"));
    }

    /// What is told of no single field.
    pub(crate) fn other(&mut self, reason: String) {
        self.0.push(reason);
    }

    pub(crate) fn text(self) -> Option<String> {
        aggregate(self.0)
    }
}
