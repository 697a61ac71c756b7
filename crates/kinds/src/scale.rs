//! Where custom resources have what `scale` shows.

use serde_json::Value;

/// Where the numbers of a scale stand, each a list of field names.
pub struct Scale {
    pub spec_replicas: Vec<String>,
    pub status_replicas: Vec<String>,
    /// Empty: the objects say no selector.
    pub selector: Vec<String>,
}

impl Scale {
    pub(crate) fn read(scale: &Value) -> Option<Self> {
        let path = |name: &str| {
            let text = scale[name].as_str().unwrap_or_default().trim_start_matches('.');
            text.split('.').filter(|it| !it.is_empty()).map(str::to_owned).collect()
        };
        scale.is_object().then(|| Self {
            spec_replicas: path("specReplicasPath"),
            status_replicas: path("statusReplicasPath"),
            selector: path("labelSelectorPath"),
        })
    }
}
