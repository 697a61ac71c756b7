//! The Pods there are, and where those of this node are plugged in.
//!
//! Of its own Pods a node knows the addresses before anybody else, and better: one that it has given again is the new Pod's,
//! whatever the status of the old one says.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use corten_meta::Key;

use crate::{
    pod_sandbox::PodSandbox,
    projections::{Meta, Pod, PodSpec},
    shared::Places,
};

#[derive(Default)]
pub(crate) struct Pods {
    node_name: String,
    /// By [`Pod::id`], as all that follow which name no other key.
    entries: BTreeMap<String, Entry>,
    /// Of those that are stored, by what their node calls them.
    uids: BTreeMap<Key, String>,
    /// By sandbox.
    plugged: BTreeMap<String, PodSandbox>,
    /// The sandboxes of a Pod: one that is made anew can meet the one before it.
    sandboxes: BTreeMap<String, BTreeSet<String>>,
    /// Whose sandbox has which address.
    owners: BTreeMap<IpAddr, String>,
}

pub(crate) struct Entry {
    pub(crate) pod: Box<Pod>,
    /// One that is gone from the API is what it last was as long as it is plugged in.
    is_stored: bool,
    pub(crate) places: Places,
}

/// Whose place is to be found anew.
#[derive(Default)]
pub(crate) struct Dirty {
    pub(crate) uids: BTreeSet<String>,
    pub(crate) addresses: BTreeSet<IpAddr>,
    /// Nobody's any more: their places are to be given up.
    pub(crate) gone: Vec<Entry>,
}

impl Pods {
    pub(crate) fn new(node_name: &str) -> Self {
        Self { node_name: node_name.to_owned(), ..Self::default() }
    }

    pub(crate) fn knows(&self, uid: &str) -> bool {
        self.entries.contains_key(uid)
    }

    pub(crate) fn set(&mut self, pod: Box<Pod>, dirty: &mut Dirty) {
        let (key, uid) = (pod.metadata.key(), pod.id());
        if let Some(before) = self.uids.insert(key, uid.clone())
            && before != uid
        {
            self.forget(&before, dirty);
        }
        let is_news = match self.entries.get_mut(&uid) {
            Some(entry) => {
                entry.is_stored = true;
                let is_news = entry.pod != pod;
                entry.pod = pod;
                is_news
            }
            None => {
                self.entries.insert(uid.clone(), Entry { pod, is_stored: true, places: Places::new() });
                true
            }
        };
        if is_news {
            self.mark(&uid, dirty);
        }
    }

    pub(crate) fn remove(&mut self, key: &Key, dirty: &mut Dirty) {
        if let Some(uid) = self.uids.remove(key) {
            self.forget(&uid, dirty);
        }
    }

    fn forget(&mut self, uid: &str, dirty: &mut Dirty) {
        if self.sandboxes.contains_key(uid) {
            if let Some(entry) = self.entries.get_mut(uid) {
                entry.is_stored = false;
            }
        } else {
            dirty.gone.extend(self.entries.remove(uid));
        }
    }

    pub(crate) fn plug(&mut self, plugged: PodSandbox, dirty: &mut Dirty) {
        self.unplug(&plugged.sandbox, dirty);
        let id = plugged.id();
        let PodSandbox { sandbox, pod, uid, addresses, labels } = &plugged;
        if let Some(labels) = labels
            && !self.knows(&id)
        {
            let metadata = Meta {
                name: pod.name.clone(),
                namespace: pod.namespace.clone(),
                uid: uid.clone(),
                labels: labels.clone(),
                ..Meta::default()
            };
            let spec = PodSpec { node_name: self.node_name.clone(), ..PodSpec::default() };
            let pod = Box::new(Pod { metadata, spec, ..Pod::default() });
            self.entries.insert(id.clone(), Entry { pod, is_stored: false, places: Places::new() });
        }
        for address in addresses {
            self.owners.insert(*address, sandbox.clone());
        }
        self.sandboxes.entry(id.clone()).or_default().insert(sandbox.clone());
        dirty.addresses.extend(addresses);
        self.mark(&id, dirty);
        self.mark_claimants(addresses, dirty);
        self.plugged.insert(sandbox.clone(), plugged);
    }

    pub(crate) fn unplug(&mut self, sandbox: &str, dirty: &mut Dirty) {
        let Some(plugged) = self.plugged.remove(sandbox) else { return };
        let id = plugged.id();
        for address in &plugged.addresses {
            if self.owners.get(address).is_some_and(|it| it == sandbox) {
                self.owners.remove(address);
            }
            dirty.addresses.insert(*address);
        }
        if let Some(others) = self.sandboxes.get_mut(&id) {
            others.remove(sandbox);
            if others.is_empty() {
                self.sandboxes.remove(&id);
            }
        }
        self.mark_claimants(&plugged.addresses, dirty);
        let is_over = self.entries.get(&id).is_some_and(|it| !it.is_stored);
        if is_over && !self.sandboxes.contains_key(&id) {
            dirty.gone.extend(self.entries.remove(&id));
        } else {
            self.mark(&id, dirty);
        }
    }

    fn mark(&self, uid: &str, dirty: &mut Dirty) {
        dirty.uids.insert(uid.to_owned());
        dirty.addresses.extend(self.sandboxes_of(uid).flat_map(|it| &it.addresses));
    }

    /// Who says in its status to have one of these addresses.
    fn mark_claimants(&self, addresses: &[IpAddr], dirty: &mut Dirty) {
        let claims = |it: &Entry| it.pod.addresses().any(|it| addresses.contains(&it));
        dirty.uids.extend(self.entries.iter().filter(|(_, it)| claims(it)).map(|it| it.0.clone()));
    }

    pub(crate) fn mark_namespace(&self, namespace: &str, dirty: &mut Dirty) {
        let of_it = self.entries.iter().filter(|(_, it)| it.pod.metadata.namespace == namespace);
        dirty.uids.extend(of_it.map(|it| it.0.clone()));
    }

    fn sandboxes_of(&self, uid: &str) -> impl Iterator<Item = &PodSandbox> {
        self.sandboxes.get(uid).into_iter().flatten().filter_map(|it| self.plugged.get(it))
    }

    pub(crate) fn entry(&self, uid: &str) -> Option<&Entry> {
        self.entries.get(uid)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&String, &Entry)> {
        self.entries.iter()
    }

    pub(crate) fn entry_mut(&mut self, uid: &str) -> Option<&mut Entry> {
        self.entries.get_mut(uid)
    }

    pub(crate) fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.values_mut()
    }

    /// Those of all, in the order of [`Pods::entries`].
    pub(crate) fn all_addresses(&self) -> Vec<Vec<IpAddr>> {
        self.entries.keys().map(|it| self.addresses(it)).collect()
    }

    /// Where others meet the Pod.
    pub(crate) fn addresses(&self, uid: &str) -> Vec<IpAddr> {
        let Some(Entry { pod, .. }) = self.entries.get(uid) else { return Vec::new() };
        // With the host's network its address is the node's, and not its own.
        if pod.spec.host_network {
            return Vec::new();
        }
        if self.sandboxes.contains_key(uid) {
            let is_own = |sandbox: &str, it: &IpAddr| self.owners.get(it).is_some_and(|it| it == sandbox);
            let all = self.sandboxes_of(uid);
            return all.flat_map(|of| of.addresses.iter().filter(|it| is_own(&of.sandbox, it))).copied().collect();
        }
        if pod.is_over() || pod.spec.node_name == self.node_name {
            return Vec::new();
        }
        pod.addresses().filter(|it| !self.owners.contains_key(it)).collect()
    }

    /// Who is plugged in with this address.
    pub(crate) fn owner(&self, address: IpAddr) -> Option<&PodSandbox> {
        self.owners.get(&address).and_then(|it| self.plugged.get(it))
    }

    /// All that is plugged in.
    pub(crate) fn plugged(&self) -> &BTreeMap<String, PodSandbox> {
        &self.plugged
    }
}
