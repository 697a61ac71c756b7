//! The one format of both files: a header, then frames, each with a checksum.
//!
//! ```text
//! file    magic 8 | version 4 | salt 4 | revision 8 | crc 4          all numbers little endian
//!         then frames, then perhaps zeros
//! frame   magic 4 | length 4 | crc 4 | payload                       the crc covers salt, length and payload
//! payload of a log frame          the changes of one batch
//! payload of a checkpoint frame   some of the entries, written as changes; the last frame is empty
//! change  revision 8 | key length 4 | key | create revision 8, 0 for a deletion | version 8? | lease 8? | value length 4 | value
//! ```
//! The two highest bits of the create revision say whether version and lease follow. A log tells no versions: who replays it counts.
//! Files of version 1 have neither: a key of theirs that was ever changed counts from 2.
//!
//! One frame is one durable write. So after a crash only the last can be torn, and a sound frame behind a broken one
//! shows that the disk has lost something that was answered. The salt, unknown to clients, keeps a value that looks
//! like a frame from being taken for one.

use std::io::{self, BufReader, Read};

use bytes::Bytes;
use crc32fast::Hasher;

use crate::{Change, Entry, Revision};

pub(super) const HEADER: usize = 28;
pub(super) const FRAME: usize = 12;
/// Of a change, beside key and value.
pub(super) const CHANGE: usize = 40;
const VERSION: u32 = 2;
const OLDEST_VERSION: u32 = 1;
const HAS_VERSION: u64 = 1 << 63;
const HAS_LEASE: u64 = 1 << 62;
const FRAME_MAGIC: u32 = 0x4e54_5243;
pub(super) const LOG_MAGIC: &[u8; 8] = b"CORTENLG";
pub(super) const CHECKPOINT_MAGIC: &[u8; 8] = b"CORTENCP";

#[derive(Clone, Copy)]
pub(super) struct Header {
    version: u32,
    pub(super) salt: u32,
    pub(super) revision: Revision,
}

impl Header {
    pub(super) fn new(salt: u32, revision: Revision) -> Self {
        Self { version: VERSION, salt, revision }
    }

    /// An older program may read the file, and not all that this one writes.
    pub(super) fn is_older(self) -> bool {
        self.version < VERSION
    }

    /// Always of the newest version.
    pub(super) fn encode(self, magic: &[u8; 8]) -> Vec<u8> {
        let mut bytes = magic.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.salt.to_le_bytes());
        bytes.extend(self.revision.to_le_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; HEADER], magic: &[u8; 8]) -> Result<Self, String> {
        let mut cursor = Cursor(&bytes[8..]);
        let mut field = || cursor.u32().expect("the header is long enough");
        let (version, salt, low, high, crc) = (field(), field(), field(), field(), field());
        if &bytes[..8] != magic {
            return Err("it does not begin as such a file does".into());
        }
        if !(OLDEST_VERSION..=VERSION).contains(&version) {
            return Err(format!(
                "it is of version {version}, this program knows versions {OLDEST_VERSION} to {VERSION}"
            ));
        }
        if crc != crc32fast::hash(&bytes[..HEADER - 4]) {
            return Err("the checksum of its header is wrong".into());
        }
        Ok(Self { version, salt, revision: u64::from(high) << 32 | u64::from(low) })
    }
}

/// Appends one frame to `out`, its payload written by `payload`.
pub(super) fn write_frame(salt: u32, out: &mut Vec<u8>, payload: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.resize(start + FRAME, 0);
    payload(out);
    let length = len32(&out[start + FRAME..]);
    let crc = checksum(salt, length, &out[start + FRAME..]);
    out[start..start + 4].copy_from_slice(&FRAME_MAGIC.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
    out[start + 8..start + FRAME].copy_from_slice(&crc.to_le_bytes());
}

fn checksum(salt: u32, length: u32, payload: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&salt.to_le_bytes());
    hasher.update(&length.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}

pub(super) fn encode_change(change: &Change, out: &mut Vec<u8>) {
    encode(change.revision, &change.key, change.entry.as_ref(), 0, out);
}

pub(super) fn encode_entry(entry: &Entry, out: &mut Vec<u8>) {
    // Without it, it is 1.
    let version = if entry.version > 1 { entry.version } else { 0 };
    encode(entry.mod_revision, &entry.key, Some(entry), version, out);
}

fn encode(revision: Revision, key: &[u8], entry: Option<&Entry>, version: u64, out: &mut Vec<u8>) {
    out.extend(revision.to_le_bytes());
    out.extend(len32(key).to_le_bytes());
    out.extend(key);
    let lease = entry.map_or(0, |it| it.lease);
    let mut created = entry.map_or(0, |it| it.create_revision);
    for (flag, follows) in [(HAS_VERSION, version != 0), (HAS_LEASE, lease != 0)] {
        created |= if follows { flag } else { 0 };
    }
    out.extend(created.to_le_bytes());
    if version != 0 {
        out.extend(version.to_le_bytes());
    }
    if lease != 0 {
        out.extend(lease.to_le_bytes());
    }
    let value = entry.map_or(&[][..], |it| &it.value[..]);
    out.extend(len32(value).to_le_bytes());
    out.extend(value);
}

fn len32(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("transactions and batches are bounded far below 4 GiB")
}

/// A change as the log has it: what stood there before is found while replaying.
#[derive(Debug)]
pub(super) struct LoggedChange {
    pub(super) revision: Revision,
    pub(super) key: Bytes,
    pub(super) entry: Option<Entry>,
}

/// `None` if the payload is not a row of changes.
pub(super) fn decode_changes(payload: &[u8]) -> Option<Vec<LoggedChange>> {
    let mut cursor = Cursor(payload);
    let mut changes = Vec::new();
    while !cursor.0.is_empty() {
        let revision = cursor.u64()?;
        let key = Bytes::copy_from_slice(cursor.bytes()?);
        let created = cursor.u64()?;
        let create_revision = created & !(HAS_VERSION | HAS_LEASE);
        let at_least = if create_revision == revision { 1 } else { 2 };
        let version = if created & HAS_VERSION == 0 { at_least } else { cursor.u64()? };
        let lease = if created & HAS_LEASE == 0 { 0 } else { cursor.u64()?.cast_signed() };
        let value = cursor.bytes()?;
        let entry = (create_revision > 0).then(|| Entry {
            key: key.clone(),
            value: Bytes::copy_from_slice(value),
            create_revision,
            mod_revision: revision,
            version,
            lease,
            unreadable: None,
        });
        changes.push(LoggedChange { revision, key, entry });
    }
    Some(changes)
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n)?;
        self.0 = tail;
        Some(head)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.take(usize::try_from(length).ok()?)
    }
}

/// Reads a file frame by frame.
pub(super) struct Frames<R> {
    reader: BufReader<R>,
    pub(super) header: Header,
    length: u64,
    /// Where the sound part ends.
    pub(super) sound: u64,
    payload: Vec<u8>,
}

pub(super) enum Next<'a> {
    Payload(&'a [u8]),
    End,
    /// What follows is no sound frame. `beyond`: but further on there is one.
    Broken {
        beyond: bool,
    },
}

/// Why a file cannot be read at all.
pub(super) enum Unreadable {
    Io(io::Error),
    Damaged(String),
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl<R: Read> Frames<R> {
    pub(super) fn new(file: R, length: u64, magic: &[u8; 8]) -> Result<Self, Unreadable> {
        let mut reader = BufReader::with_capacity(1 << 18, file);
        if length < HEADER as u64 {
            return Err(Unreadable::Damaged("it is shorter than its header".into()));
        }
        let mut bytes = [0; HEADER];
        reader.read_exact(&mut bytes)?;
        let header = Header::decode(&bytes, magic).map_err(Unreadable::Damaged)?;
        Ok(Self { reader, header, length, sound: HEADER as u64, payload: Vec::new() })
    }

    pub(super) fn read_next(&mut self) -> io::Result<Next<'_>> {
        let left = self.length - self.sound;
        if left == 0 {
            return Ok(Next::End);
        }
        let mut head = [0; FRAME];
        if left < FRAME as u64 {
            return self.search(&[]);
        }
        self.reader.read_exact(&mut head)?;
        let (magic, length, crc) = split_head(&head);
        if magic != FRAME_MAGIC || u64::from(length) > left - FRAME as u64 {
            return self.search(&head);
        }
        self.payload.resize(length as usize, 0);
        self.reader.read_exact(&mut self.payload)?;
        if checksum(self.header.salt, length, &self.payload) != crc {
            let mut read = head.to_vec();
            read.append(&mut self.payload);
            return self.search(&read);
        }
        self.sound += FRAME as u64 + u64::from(length);
        Ok(Next::Payload(&self.payload))
    }

    /// Looks for a sound frame behind a broken one.
    fn search(&mut self, read: &[u8]) -> io::Result<Next<'_>> {
        let mut rest = read.to_vec();
        self.reader.read_to_end(&mut rest)?;
        // Room that was allocated and never written to.
        if rest.iter().all(|it| *it == 0) {
            return Ok(Next::End);
        }
        let beyond = (1..rest.len()).any(|at| is_sound(&rest[at..], self.header.salt));
        Ok(Next::Broken { beyond })
    }
}

fn split_head(head: &[u8; FRAME]) -> (u32, u32, u32) {
    let mut cursor = Cursor(head);
    let mut field = || cursor.u32().expect("the head has three fields");
    (field(), field(), field())
}

fn is_sound(bytes: &[u8], salt: u32) -> bool {
    let Some((head, rest)) = bytes.split_first_chunk::<FRAME>() else { return false };
    let (magic, length, crc) = split_head(head);
    magic == FRAME_MAGIC && rest.get(..length as usize).is_some_and(|payload| checksum(salt, length, payload) == crc)
}
