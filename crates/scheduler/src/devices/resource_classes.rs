//! Which class has the devices of an extended resource (KEP-5004).

use std::collections::BTreeMap;

use corten_meta::Time;

use super::DeviceClass;
use crate::requests::Amounts;

/// Every class has a resource of its own: this, then its name.
const IMPLIED: &str = "deviceclass.resource.kubernetes.io/";

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResourceClasses {
    /// By class: when it was made, and the resource that it names.
    named: BTreeMap<String, (Option<Time>, Option<String>)>,
    class_of: BTreeMap<String, String>,
}

impl ResourceClasses {
    pub(crate) fn set(&mut self, class: &DeviceClass) {
        let resource = class.spec.as_ref().and_then(|it| it.extended_resource_name.clone());
        self.named.insert(class.metadata.name.clone(), (class.metadata.creation_timestamp, resource));
        self.sort();
    }

    pub(crate) fn remove(&mut self, class: &str) {
        self.named.remove(class);
        self.sort();
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

    /// The class that has the devices of a resource on a node of which this is allocatable: none where a device plugin has them
    /// (`shouldDelegateResourceToDRA`).
    pub(crate) fn class_on(&self, resource: &str, allocatable: &Amounts) -> Option<&str> {
        let is_of_plugin = allocatable.extended.get(resource).is_some_and(|it| *it > 0);
        self.class_of.get(resource).filter(|_| !is_of_plugin).map(String::as_str)
    }
}
