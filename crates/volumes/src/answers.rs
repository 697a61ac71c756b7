//! How much a driver may say: what it answers stands in objects of the API, and in events. It is looked at where the driver is asked, and
//! again where a node passes its answer on, which need not be one of Corten's.

use std::collections::BTreeMap;

use crate::{CreatedVolume, Fault, call::Reply, driver::MESSAGE_CHARS_MAX};

/// CSI says 128 bytes; drivers of clouds name a volume by its whole address.
const HANDLE_BYTES_MAX: usize = 1024;
/// Of one volume: labels of nodes that reach it.
const TOPOLOGIES_MAX: usize = 256;
/// CSI says 4 KiB for a map; a driver is not refused for a little more, and the object has room for it.
const MAP_BYTES_MAX: usize = 16 << 10;

pub(crate) fn check_handle(what: &str, handle: &str) -> Result<(), Fault> {
    let is_name = !handle.is_empty() && handle.len() <= HANDLE_BYTES_MAX && !handle.chars().any(char::is_control);
    match is_name {
        true => Ok(()),
        false => Err(Fault::internal(format!("the driver answers with no {what} id, or one that is none"))),
    }
}

pub(crate) fn check_map(what: &str, map: &BTreeMap<String, String>) -> Result<(), Fault> {
    let bytes: usize = map.iter().map(|it| it.0.len() + it.1.len()).sum();
    match bytes <= MAP_BYTES_MAX {
        true => Ok(()),
        false => Err(Fault::internal(format!("the driver answers with a {what} of more than {MAP_BYTES_MAX} bytes"))),
    }
}

pub(crate) fn check_places(n_places: usize) -> Result<(), Fault> {
    match n_places <= TOPOLOGIES_MAX {
        true => Ok(()),
        false => Err(Fault::internal(format!("the driver answers with more than {TOPOLOGIES_MAX} topologies"))),
    }
}

impl Reply {
    /// What came over a node.
    ///
    /// # Errors
    /// It is more than a driver may say.
    pub fn checked(self) -> Result<Self, Fault> {
        match &self {
            Self::Created(made) => check_created(made)?,
            Self::Attached(context) => check_map("publish_context", context)?,
            Self::Snapshot(Some(it)) => {
                check_handle("snapshot", &it.handle)?;
                if !it.source.is_empty() {
                    check_handle("source volume", &it.source)?;
                }
            }
            Self::Conditions(all) => {
                let long = |it: &&String| it.chars().count() > MESSAGE_CHARS_MAX;
                if all.values().flatten().any(|it| long(&it)) {
                    return Err(Fault::internal("the driver says more of a volume's condition than there is room for"));
                }
            }
            // Nobody looks at more of these than was asked about.
            Self::AttachedTo(_) | Self::Done | Self::Expanded(_) | Self::Snapshot(None) | Self::Capacity(_) => {}
        }
        Ok(self)
    }
}

fn check_created(made: &CreatedVolume) -> Result<(), Fault> {
    check_handle("volume", &made.handle)?;
    check_map("volume_context", &made.context)?;
    check_places(made.topology.len())?;
    made.topology.iter().try_for_each(|it| check_map("topology", it))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Snapshot;

    #[test]
    fn what_a_node_passes_on_is_bounded() {
        let long = || BTreeMap::from([("key".to_owned(), "x".repeat(MAP_BYTES_MAX))]);
        let made = |handle: &str| CreatedVolume { handle: handle.into(), ..CreatedVolume::default() };
        let snapshot = |handle: &str, source: &str| {
            let (handle, source) = (handle.into(), source.into());
            Reply::Snapshot(Some(Snapshot { handle, source, bytes: 1, created_at: 0, is_ready: true }))
        };
        let condition = |words: String| Reply::Conditions(BTreeMap::from([("h".to_owned(), Some(words))]));
        for (reply, is_taken) in [
            (Reply::Created(made("h")), true),
            (Reply::Created(made("")), false),
            (Reply::Created(made(&"h".repeat(HANDLE_BYTES_MAX + 1))), false),
            (Reply::Created(CreatedVolume { context: long(), ..made("h") }), false),
            (Reply::Created(CreatedVolume { topology: vec![long()], ..made("h") }), false),
            (Reply::Attached(long()), false),
            (snapshot("s", "h"), true),
            (snapshot("s\n", "h"), false),
            (snapshot("s", ""), true),
            (snapshot("s", "h\n"), false),
            (Reply::Created(CreatedVolume { topology: vec![BTreeMap::new(); TOPOLOGIES_MAX + 1], ..made("h") }), false),
            (condition("sick".into()), true),
            (condition("x".repeat(MESSAGE_CHARS_MAX + 1)), false),
        ] {
            assert_eq!(reply.clone().checked().is_ok(), is_taken, "{reply:?}");
        }
    }

    #[test]
    fn a_fault_that_is_read_has_a_bounded_message() {
        let told = serde_json::to_string(&Fault::internal("x".repeat(1 << 20))).expect("JSON");
        let read: Fault = serde_json::from_str(&told).expect("a fault");
        assert_eq!(read.message.len(), MESSAGE_CHARS_MAX);
    }
}
