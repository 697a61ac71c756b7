//! Decodes a configuration file of `apiserver.config.k8s.io`, strictly: an unknown field or another kind is an error.

use serde::de::DeserializeOwned;

use crate::problems::{ConfigError, Problems};

const GROUP: &str = "apiserver.config.k8s.io";
const VERSIONS: [&str; 2] = ["apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1"];

/// A kind of configuration, as it is written in a file.
pub(crate) trait Configuration: DeserializeOwned {
    const KIND: &str;
    /// What cannot be loaded, in the words of kube-apiserver's message.
    const NAME: &str;

    fn api_version(&self) -> &str;
    fn kind(&self) -> &str;
}

/// Decodes `text` and compiles what it says; `compile` collects everything that is wrong with it.
///
/// # Errors
/// The text is not such a configuration, or `compile` found problems.
pub(crate) fn read<T: Configuration, C>(
    text: &str,
    compile: impl FnOnce(&T, &mut Problems) -> C,
) -> Result<C, ConfigError> {
    let wrong = |detail: String| ConfigError(format!("failed to load {}: {detail}", T::NAME));
    let found: T = serde_saphyr::from_str(text).map_err(|error| {
        // The first line is the error, the lines after it show the text around it.
        let error = error.to_string();
        let line = error.lines().next().unwrap_or_default();
        wrong(format!("strict decoding error: {}", line.trim_start_matches("error: ")))
    })?;
    if found.kind() != T::KIND || !VERSIONS.contains(&found.api_version()) {
        return Err(wrong(format!(
            "no kind {:?} is registered for version {:?}, only {} of v1 and v1beta1 of {GROUP}",
            found.kind(),
            found.api_version(),
            T::KIND,
        )));
    }
    let mut problems = Problems::default();
    let compiled = compile(&found, &mut problems);
    match problems.text() {
        Some(text) => Err(wrong(text)),
        None => Ok(compiled),
    }
}
