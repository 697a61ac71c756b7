//! Which class has the devices of an extended resource (KEP-5004).

use std::collections::BTreeMap;

use corten_meta::Time;

/// Every class has a resource of its own: this, then its name.
const IMPLIED: &str = "deviceclass.resource.kubernetes.io/";

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct ResourceClasses {
    /// By class: when it was made, and the resource that it names.
    named: BTreeMap<String, (Option<Time>, Option<String>)>,
    class_of: BTreeMap<String, String>,
}

impl ResourceClasses {
    pub fn set(&mut self, class: String, made: Option<Time>, resource: Option<String>) {
        self.named.insert(class, (made, resource));
        self.sort();
    }

    pub fn remove(&mut self, class: &str) {
        self.named.remove(class);
        self.sort();
    }

    pub fn class_of(&self, resource: &str) -> Option<&str> {
        self.class_of.get(resource).map(String::as_str)
    }

    /// As in `ExtendedResourceCache`: of classes that name the same resource the newest has it, so that one can take the place of
    /// another; of those that were made at the same time, the first by name.
    fn sort(&mut self) {
        let mut newest: BTreeMap<&str, (Option<Time>, &str)> = BTreeMap::new();
        for (class, (made, resource)) in &self.named {
            let Some(resource) = resource else { continue };
            let has = newest.entry(resource).or_insert((*made, class));
            if has.0 < *made {
                *has = (*made, class);
            }
        }
        let implied = self.named.keys().map(|it| (format!("{IMPLIED}{it}"), it.clone()));
        let named = newest.into_iter().map(|(resource, it)| (resource.to_owned(), it.1.to_owned()));
        self.class_of = named.chain(implied).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_class_has_the_resource() {
        let mut classes = ResourceClasses::default();
        let mut set = |class: &str, made: i64, resource: Option<&str>| {
            classes.set(class.to_owned(), Some(Time::from_unix_seconds(made)), resource.map(str::to_owned));
            classes.class_of("example.com/gpu").map(str::to_owned)
        };
        assert_eq!(set("b", 5, Some("example.com/gpu")).as_deref(), Some("b"));
        assert_eq!(set("a", 4, Some("example.com/gpu")).as_deref(), Some("b"), "it is older");
        assert_eq!(set("c", 5, Some("example.com/gpu")).as_deref(), Some("b"), "it is later by name");
        assert_eq!(set("d", 6, Some("example.com/gpu")).as_deref(), Some("d"));
        assert_eq!(set("d", 6, Some("example.com/nic")).as_deref(), Some("b"), "it names another now");
        assert_eq!(set("b", 5, None).as_deref(), Some("c"), "it names none now");
        assert_eq!(classes.class_of("example.com/nic"), Some("d"));
        assert_eq!(classes.class_of("deviceclass.resource.kubernetes.io/b"), Some("b"));
        classes.remove("b");
        classes.remove("c");
        assert_eq!(classes.class_of("example.com/gpu"), Some("a"), "those that were newer are gone");
        assert_eq!(classes.class_of("deviceclass.resource.kubernetes.io/b"), None);
    }
}
