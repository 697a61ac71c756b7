//! What the control plane asks of the drivers of a node, over the kubelet's API: a line of JSON, then bytes of a volume where there
//! are any. The built-in driver has a path of its own, and words that nodes of earlier releases know.
//!
//! The node needs no right of its own for it: it is asked, and answers. What it answers is about itself alone.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    Call, Capacity, Code, CreateSnapshot, CreateVolume, CreatedVolume, Driver, Expanded, Fault, Reply, Snapshot,
};

/// The path of the kubelet's API, for the built-in driver.
pub const PATH: &str = "/volumes/local.corten.dev";
/// For those of others: [`AskedOfDriver`], and a [`Reply`] or a [`Fault`].
pub const DRIVERS_PATH: &str = "/volumes";

/// Bytes of a question or an answer at most: the API server sends no more than 3 MiB of a body on.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// What a node is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Asked {
    Create(CreateVolume),
    Delete { handle: String },
    Expand { handle: String, bytes: u64 },
    ExpandOnNode { handle: String, bytes: u64 },
    CreateSnapshot(CreateSnapshot),
    DeleteSnapshot { handle: String },
    FindSnapshot { handle: String },
    Capacity,
    Move { of: VolumeMove, step: Moving },
}

impl Asked {
    /// As it is put to the built-in driver; `None`: it is never asked that. It is told no Secrets.
    pub fn of(call: Call) -> Option<Self> {
        Some(match call {
            Call::Create(volume) => Self::Create(CreateVolume { secrets: BTreeMap::new(), ..volume }),
            Call::Delete { handle, .. } => Self::Delete { handle },
            Call::Expand { volume, bytes } => Self::Expand { handle: volume.handle, bytes },
            Call::CreateSnapshot(it) => Self::CreateSnapshot(CreateSnapshot { secrets: BTreeMap::new(), ..it }),
            Call::DeleteSnapshot { handle, .. } => Self::DeleteSnapshot { handle },
            Call::FindSnapshot { handle, .. } => Self::FindSnapshot { handle },
            Call::Capacity { .. } => Self::Capacity,
            Call::Attach { .. }
            | Call::Detach { .. }
            | Call::Conditions { .. }
            | Call::Attached { .. }
            | Call::Modify { .. } => return None,
        })
    }
}

/// What a driver of somebody else's is asked.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedOfDriver {
    pub driver: String,
    pub call: Call,
}

/// Puts a message to the one of these drivers that it names; what is refused is an answer, too.
///
/// # Errors
/// 400 of the kubelet's API: it is no message.
pub async fn put(message: &[u8], driver: impl Fn(&str) -> Option<Arc<dyn Driver>>) -> Result<Vec<u8>, Fault> {
    let (AskedOfDriver { driver: name, call }, _) = read(message)?;
    let replied = match driver(&name) {
        Some(driver) => call.put_to(&*driver).await,
        None => Err(Fault::new(Code::Unavailable, format!("driver {name} is not registered on this node"))),
    };
    written(&replied, &[])
}

/// One move of one volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeMove {
    pub handle: String,
    /// Of this move alone: `NUMBER-NONCE`. A later move of the volume has a larger number.
    pub id: String,
}

/// A step of a volume's move to another node. What another move has left is never taken for this one's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Moving {
    /// The volume goes to another node: nobody mounts it here any more.
    Leave { to: String },
    /// It does not.
    Stay,
    /// It has gone: what this node still has of it is removed.
    RemoveLeft,
    /// What it holds in a part of a range: the first that is no hole, or nothing.
    Read(Piece),
    /// What it holds in the range, as a hash.
    Hash(Piece),
    /// The volume comes from another node. `record` is what that answered.
    Arrive { record: String },
    /// These bytes follow.
    Write { at: u64 },
    /// Is what came in the range what was there?
    Check { piece: Piece, hash: String },
    /// All has come: it is this node's.
    Settle,
    /// It does not come: what has come of it is removed, were it all.
    GiveUp,
}

/// A range of bytes of a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    pub at: u64,
    pub end: u64,
}

/// What it answers; each question has its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answered {
    Done,
    Created(CreatedVolume),
    Expanded(Expanded),
    Snapshot(Option<Snapshot>),
    Capacity(Option<Capacity>),
    /// How large the volume is that leaves, and what the node where it arrives is told of it.
    Leaving {
        bytes: u64,
        record: String,
    },
    /// Up to where it is there; is it a volume of the node already?
    Arriving {
        here: u64,
        is_settled: bool,
    },
    /// These bytes, from here on, follow; none: there are no more in the range.
    Data {
        at: u64,
    },
    Hash(String),
}

impl Answered {
    /// What a [`Call`] is answered with; `None`: that is no answer to one.
    pub fn reply(self) -> Option<Reply> {
        Some(match self {
            Self::Done => Reply::Done,
            Self::Created(it) => Reply::Created(it),
            Self::Expanded(it) => Reply::Expanded(it),
            Self::Snapshot(it) => Reply::Snapshot(it),
            Self::Capacity(it) => Reply::Capacity(it),
            Self::Leaving { .. } | Self::Arriving { .. } | Self::Data { .. } | Self::Hash(_) => return None,
        })
    }
}

/// As it is sent.
pub fn written(head: &impl Serialize, data: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut message = serde_json::to_vec(head).map_err(Fault::internal)?;
    message.push(b'\n');
    message.extend_from_slice(data);
    Ok(message)
}

/// The line, and the bytes after it.
pub fn read<T: DeserializeOwned>(message: &[u8]) -> Result<(T, &[u8]), Fault> {
    let end = message.iter().position(|it| *it == b'\n').unwrap_or(message.len());
    let invalid = |it| Fault::new(Code::InvalidArgument, format!("read what is asked of the driver: {it}"));
    let head = serde_json::from_slice(&message[..end]).map_err(invalid)?;
    Ok((head, message.get(end + 1..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_of_a_driver_is_read_as_it_was_written() {
        let (handle, secrets) = (|| "h".to_owned(), || BTreeMap::from([("key".to_owned(), "s".to_owned())]));
        let volume = || crate::StageVolume { secrets: secrets(), ..crate::StageVolume::of("h") };
        let calls = [
            Call::Create(CreateVolume { name: "v".into(), secrets: secrets(), ..CreateVolume::default() }),
            Call::Delete { handle: handle(), secrets: secrets() },
            Call::Expand { volume: volume(), bytes: 7 },
            Call::Attach { volume: volume(), node_id: "n".into(), read_only: true },
            Call::Detach { handle: handle(), node_id: "n".into(), secrets: secrets() },
            Call::CreateSnapshot(CreateSnapshot { name: "s".into(), ..CreateSnapshot::default() }),
            Call::DeleteSnapshot { handle: handle(), secrets: secrets() },
            Call::FindSnapshot { handle: handle(), secrets: secrets() },
            Call::Conditions { handles: [handle()].into() },
            Call::Attached { places: [(handle(), handle())].into() },
            Call::Modify { handle: handle(), parameters: secrets(), secrets: secrets() },
            Call::Capacity { parameters: secrets() },
        ];
        for call in calls {
            let asked = AskedOfDriver { driver: "d".into(), call: call.clone() };
            let message = written(&asked, &[]).expect("it can be written");
            assert!(read::<AskedOfDriver>(&message).is_ok_and(|it| it.0 == asked), "{message:?}");
            // The built-in driver is told no Secrets, in whichever form.
            let told = Asked::of(call).map(|it| serde_json::to_string(&it).expect("JSON"));
            assert!(!told.is_some_and(|it| it.contains("\"key\"")));
        }
    }

    #[test]
    fn an_earlier_control_planes_change_is_read() {
        let message = br#"{"driver":"d","call":{"Modify":{"handle":"h","parameters":{}}}}"#;
        let call = Call::Modify { handle: "h".into(), parameters: BTreeMap::new(), secrets: BTreeMap::new() };
        assert!(read::<AskedOfDriver>(message).is_ok_and(|it| it.0.call == call));
    }

    #[tokio::test]
    async fn a_driver_that_is_not_there_is_an_answer() {
        let call = Call::Capacity { parameters: BTreeMap::new() };
        let message = written(&AskedOfDriver { driver: "d".into(), call }, &[]).expect("it can be written");
        let answer = put(&message, |_| None).await.expect("an answer");
        let (told, _) = read::<Result<Reply, Fault>>(&answer).expect("it can be read");
        assert_eq!(told.map_err(|it| it.code), Err(Code::Unavailable));
        assert!(put(b"no message", |_| None).await.is_err());
    }

    #[test]
    fn a_message_is_a_line_and_bytes() {
        let asked = Asked::Expand { handle: "pvc-1".into(), bytes: 7 };
        let message = written(&asked, b"a\nb").expect("it can be written");
        assert_eq!(message, b"{\"Expand\":{\"handle\":\"pvc-1\",\"bytes\":7}}\na\nb");
        assert_eq!(read::<Asked>(&message), Ok((asked, &b"a\nb"[..])));
        assert_eq!(read::<Asked>(b"\"Capacity\""), Ok((Asked::Capacity, &b""[..])));
        assert_eq!(read::<Asked>(b"\"None\"\n").map_err(|it| it.code), Err(Code::InvalidArgument));
    }
}
