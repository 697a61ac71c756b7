//! All entries of a store at once, from the form that Corten keeps them in alone to the form that they have in an etcd.

use bytes::Bytes;
use corten_store::{Entry, Operation, Txn};

use crate::{
    form::{from_stored, to_stored},
    ranges::{self, ALLOCATION, PortChanges, Ports, RangeKey},
};

/// Each entry keeps its revisions. What Services have been given becomes one entry for all ports, and none for addresses, which their
/// IPAddresses stand for.
///
/// # Errors
/// The key of an object that could not be read again, and why.
pub fn as_kubernetes(entries: Vec<Entry>) -> Result<Vec<Entry>, String> {
    let (mut stored, mut ports) = (Vec::with_capacity(entries.len()), Vec::new());
    for entry in entries {
        match ranges::range_key(&entry.key) {
            Some(RangeKey::Address(_)) => {}
            Some(RangeKey::Port(_)) => ports.push(entry),
            None => stored.push(converted(entry)?),
        }
    }
    stored.extend(allocation(&ports)?);
    stored.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(stored)
}

fn converted(entry: Entry) -> Result<Entry, String> {
    let value = to_stored(&entry.key, &entry.value);
    let failed = |why: String| format!("{}: {why}", String::from_utf8_lossy(&entry.key));
    let read = from_stored(&entry.key, &value).map_err(failed)?;
    if to_stored(&entry.key, &read) != value {
        return Err(failed("it would be another object when it is read again".into()));
    }
    Ok(Entry { value, ..entry })
}

/// As of the newest of them.
fn allocation(ports: &[Entry]) -> Result<Option<Entry>, String> {
    let Some(newest) = ports.iter().max_by_key(|it| it.mod_revision) else { return Ok(None) };
    let put = |it: &Entry| Operation::Put { key: it.key.clone(), value: Bytes::new() };
    let mut given = Txn { compares: Vec::new(), operations: ports.iter().map(put).collect() };
    let value = PortChanges::taken_out_of(&mut given).applied(Ports::read(None)?);
    let value = value.map_err(|port| format!("the port {port} of a Service is in no range that Kubernetes has"))?;
    let create_revision = newest.mod_revision;
    Ok(Some(Entry { key: Bytes::from_static(ALLOCATION), value, create_revision, version: 1, ..newest.clone() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, value: &str, revision: u64) -> Entry {
        Entry {
            key: key.to_owned().into(),
            value: value.to_owned().into(),
            create_revision: revision,
            mod_revision: revision,
            version: 1,
            lease: 0,
            unreadable: None,
        }
    }

    #[test]
    fn objects_are_converted_and_ports_are_one_entry() {
        let map = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"default","uid":"u"},"data":{"k":"v"}}"#;
        let stored = as_kubernetes(vec![
            entry("/registry/configmaps/default/a", map, 7),
            entry("/registry/ranges/serviceips/10.96.0.1", "{}", 3),
            entry("/registry/ranges/servicenodeports/30001", "{}", 4),
            entry("/registry/ranges/servicenodeports/30080", "{}", 9),
        ]);
        let stored = stored.expect("it can be converted");
        let keys: Vec<_> = stored.iter().map(|it| (&it.key[..], it.create_revision, it.mod_revision)).collect();
        assert_eq!(keys, [(&b"/registry/configmaps/default/a"[..], 7, 7), (ALLOCATION, 9, 9)]);
        assert!(stored[0].value.starts_with(b"k8s\0"));
        let ports = Ports::read(Some(&stored[1].value)).expect("an allocation");
        assert_eq!(ports.given().iter().copied().collect::<Vec<_>>(), [30_001, 30_080]);
    }

    #[test]
    fn what_could_not_be_read_again_is_named() {
        let refused = as_kubernetes(vec![entry("/registry/configmaps/default/a", "no object", 2)]);
        assert!(refused.is_err_and(|it| it.starts_with("/registry/configmaps/default/a: ")));
    }
}
