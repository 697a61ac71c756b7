//! What the control plane asks of the built-in driver of a node, over the kubelet's API: a line of JSON, then bytes of a volume
//! where there are any.
//!
//! The node needs no right of its own for it: it is asked, and answers. What it answers is about itself alone.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{Capacity, Code, CreateSnapshot, CreateVolume, CreatedVolume, Expanded, Fault, Snapshot};

/// The path of the kubelet's API.
pub const PATH: &str = "/volumes/local.corten.dev";

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
    fn a_message_is_a_line_and_bytes() {
        let asked = Asked::Expand { handle: "pvc-1".into(), bytes: 7 };
        let message = written(&asked, b"a\nb").expect("it can be written");
        assert_eq!(message, b"{\"Expand\":{\"handle\":\"pvc-1\",\"bytes\":7}}\na\nb");
        assert_eq!(read::<Asked>(&message), Ok((asked, &b"a\nb"[..])));
        assert_eq!(read::<Asked>(b"\"Capacity\""), Ok((Asked::Capacity, &b""[..])));
        assert_eq!(read::<Asked>(b"\"None\"\n").map_err(|it| it.code), Err(Code::InvalidArgument));
    }
}
