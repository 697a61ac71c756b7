//! What is wrong with a configuration, in the words of upstream's `field` errors.

#[derive(Default)]
pub(super) struct Problems(Vec<String>);

impl Problems {
    pub(super) fn required(&mut self, path: &str, detail: &str) {
        self.0.push(format!("{path}: Required value: {detail}"));
    }

    pub(super) fn invalid(&mut self, path: &str, value: &str, detail: &str) {
        self.0.push(format!("{path}: Invalid value: {value:?}: {detail}"));
    }

    pub(super) fn duplicate(&mut self, path: &str, value: &str) {
        self.0.push(format!("{path}: Duplicate value: {value:?}"));
    }

    pub(super) fn too_many(&mut self, path: &str, n: usize, max: usize) {
        self.0.push(format!("{path}: Too many: {n}: must have at most {max} items"));
    }

    /// As `utilerrors.Aggregate` joins them.
    pub(super) fn text(self) -> Option<String> {
        match &*self.0 {
            [] => None,
            [one] => Some(one.clone()),
            many => Some(format!("[{}]", many.join(", "))),
        }
    }
}
