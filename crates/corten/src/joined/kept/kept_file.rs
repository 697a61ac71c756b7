//! One file of what a node keeps: the objects in it, and when it is written next.
//!
//! ```text
//! {"of":"kubelet: pods  spec.nodeName=two","version":"4711"}
//! [["default","web",{"metadata":{…}}],["default","large","UID"],["","/a/claim",null],…]
//! ```
//! Of an object that there is no room for only its uid is kept.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use bytes::Bytes;
use corten_client::{KeptList, LeftOut};
use corten_meta::Key;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::room;

/// What comes together is written together.
const SOON: Duration = Duration::from_millis(100);
/// No file holds more, so that a cluster of any size does not fill a machine's disk.
pub(super) const BYTES_MAX: usize = 32 << 20;

/// What JSON puts around an object and its names.
const SEPARATORS: usize = 16;

#[derive(Default)]
pub(super) struct KeptFile {
    objects: BTreeMap<Key, KeptObject>,
    version: String,
    bytes: usize,
    /// All that there is is in it; before that it is not written.
    is_whole: bool,
    pause: Duration,
    /// Where it is too large its largest objects are not written, and else nothing is.
    leaves_out: bool,
    left_out: BTreeSet<Key>,
    /// Since when it holds what is not written.
    changed: Option<Instant>,
    written: Option<Instant>,
    /// A hash of what is on the disk.
    on_disk: Option<u64>,
}

struct KeptObject {
    /// Nothing: it is known that there is no such object.
    object: Option<Bytes>,
    essence: u64,
}

#[derive(Serialize, Deserialize)]
struct Head {
    of: String,
    version: String,
}

type Item<'a> = (&'a str, &'a str, Option<&'a RawValue>);

/// What is written into the file.
pub(super) struct Text {
    pub(super) text: Vec<u8>,
    hash: u64,
}

impl KeptFile {
    /// Of single answers: it is never incomplete.
    pub(super) fn of_answers(before: Option<&[u8]>) -> Self {
        let mut kept_file = Self { is_whole: true, pause: Duration::from_secs(1), ..Self::default() };
        for (key, object) in before.and_then(read).map(|it| it.1).into_iter().flatten() {
            let essence = object.as_ref().map_or(0, |it| hash_of(it));
            kept_file.put(key, object, essence);
        }
        kept_file.on_disk = before.map(hash);
        kept_file
    }

    /// Of a list, whose earlier text is on the disk.
    pub(super) fn of_list(before: Option<&[u8]>) -> Self {
        Self { on_disk: before.map(hash), ..Self::default() }
    }

    /// Somebody lists it from the beginning: until that is whole, what is on the disk stays.
    pub(super) fn begin_anew(&mut self) {
        *self = Self { on_disk: self.on_disk, written: self.written, ..Self::default() };
    }

    pub(super) fn apply(&mut self, key: Key, object: Option<Bytes>, essence: u64, now: Instant) {
        let is_same = |it: &KeptObject| it.essence == essence && it.object.is_some() == object.is_some();
        if !self.objects.get(&key).is_some_and(is_same) {
            self.changed.get_or_insert(now);
        }
        self.put(key, object, essence);
    }

    /// As [`KeptFile::apply`], where every difference counts.
    pub(super) fn answer(&mut self, key: Key, object: Option<Bytes>, now: Instant) {
        let essence = object.as_ref().map_or(0, |it| hash_of(it));
        self.apply(key, object, essence, now);
    }

    fn put(&mut self, key: Key, object: Option<Bytes>, essence: u64) {
        let names = key.namespace.len() + key.name.len() + SEPARATORS;
        self.bytes += names + size(object.as_ref());
        let old = self.objects.insert(key, KeptObject { object, essence });
        self.bytes -= old.map_or(0, |it| names + size(it.object.as_ref()));
    }

    pub(super) fn remove(&mut self, key: &Key, now: Instant) {
        if let Some(old) = self.objects.remove(key) {
            self.bytes -= key.namespace.len() + key.name.len() + SEPARATORS + size(old.object.as_ref());
            self.changed.get_or_insert(now);
        }
    }

    pub(super) fn whole(&mut self, version: String, (pause, leaves_out): (Duration, bool), now: Instant) {
        (self.version, self.pause, self.leaves_out) = (version, pause, leaves_out);
        if !std::mem::replace(&mut self.is_whole, true) {
            self.changed = Some(now);
        }
    }

    pub(super) fn object(&self, key: &Key) -> Option<Option<Bytes>> {
        self.objects.get(key).map(|it| it.object.clone())
    }

    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.bytes > BYTES_MAX && !self.leaves_out
    }

    /// What it takes on the disk once it is written.
    pub(super) fn bytes(&self) -> usize {
        if self.is_too_large() { 0 } else { self.bytes.min(BYTES_MAX) }
    }

    /// It is written again, though it is the same.
    pub(super) fn touch(&mut self, now: Instant) {
        self.changed.get_or_insert(now);
    }

    /// When it is to be written, where it has changed.
    pub(super) fn due(&self) -> Option<Instant> {
        let changed = self.changed.filter(|_| self.is_whole)?;
        let soon = changed + SOON;
        Some(self.written.map_or(soon, |it| soon.max(it + self.pause)))
    }

    /// What is to be written now; nothing where the disk has it.
    pub(super) fn begin(&mut self, of: &str, now: Instant) -> Option<Text> {
        (self.changed, self.written) = (None, Some(now));
        self.leave_out(of);
        let items: Vec<Item<'_>> = self.objects.iter().filter_map(|it| item(it, &self.left_out)).collect();
        let head = Head { of: of.to_owned(), version: self.version.clone() };
        let mut text = serde_json::to_vec(&head).ok()?;
        text.push(b'\n');
        serde_json::to_writer(&mut text, &items).ok()?;
        let hash = hash(&text);
        (self.on_disk != Some(hash)).then_some(Text { text, hash })
    }

    /// Finds what there is no room for.
    fn leave_out(&mut self, of: &str) {
        if self.bytes <= BYTES_MAX {
            return self.left_out.clear();
        }
        let objects = self.objects.iter().map(|(key, it)| (key.clone(), &*key.namespace, size(it.object.as_ref())));
        let left_out: BTreeSet<Key> = room::over(objects, BYTES_MAX.saturating_sub(self.names())).into_iter().collect();
        for key in left_out.difference(&self.left_out) {
            tracing::warn!(of, %key, "too large to be kept beside the others: without the API it waits for that");
        }
        self.left_out = left_out;
    }

    /// What of it is no object.
    fn names(&self) -> usize {
        self.bytes - self.objects.values().map(|it| size(it.object.as_ref())).sum::<usize>()
    }

    pub(super) fn written(&mut self, text: &Text, is_done: bool, now: Instant) {
        if is_done {
            self.on_disk = Some(text.hash);
        } else {
            self.changed.get_or_insert(now + Duration::from_secs(30));
        }
    }

    /// It is not on the disk.
    pub(super) fn not_written(&mut self) {
        (self.changed, self.on_disk) = (None, None);
    }
}

fn size(object: Option<&Bytes>) -> usize {
    object.map_or(0, Bytes::len)
}

fn item<'a>((key, kept): (&'a Key, &'a KeptObject), left_out: &BTreeSet<Key>) -> Option<Item<'a>> {
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(borrow)]
        metadata: Metadata<'a>,
    }
    #[derive(Deserialize)]
    struct Metadata<'a> {
        #[serde(borrow)]
        uid: &'a RawValue,
    }
    let object = match &kept.object {
        Some(bytes) if left_out.contains(key) => Some(serde_json::from_slice::<Object<'_>>(bytes).ok()?.metadata.uid),
        Some(bytes) => Some(serde_json::from_slice::<&RawValue>(bytes).ok()?),
        None => None,
    };
    Some((&*key.namespace, &*key.name, object))
}

/// Of what is in it: the version of a list that has not changed is no reason to write it.
fn hash(text: &[u8]) -> u64 {
    hash_of(text.splitn(2, |it| *it == b'\n').nth(1).unwrap_or_default())
}

fn hash_of(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

type Objects = Vec<(Key, Option<Bytes>)>;

/// The version and the objects of a text; nothing where it is none.
pub(super) fn read(text: &[u8]) -> Option<(String, Objects)> {
    let (head, items) = text.split_at(text.iter().position(|it| *it == b'\n')?);
    let head: Head = serde_json::from_slice(head).ok()?;
    let items: Vec<(String, String, Option<Box<RawValue>>)> = serde_json::from_slice(items).ok()?;
    let object = |it: Box<RawValue>| Bytes::from(String::from(Box::<str>::from(it)));
    let objects = items.into_iter().map(|(namespace, name, it)| (Key::new(namespace, name), it.map(object)));
    Some((head.version, objects.collect()))
}

/// What the text is about.
pub(super) fn name(text: &[u8]) -> Option<String> {
    let head = text.splitn(2, |it| *it == b'\n').next()?;
    Some(serde_json::from_slice::<Head>(head).ok()?.of)
}

/// A text as the list that it was.
pub(super) fn list(text: &[u8]) -> Option<KeptList> {
    let (version, objects) = read(text)?;
    let mut list = KeptList { version, ..KeptList::default() };
    for (key, object) in objects {
        let Some(object) = object else { continue };
        match serde_json::from_slice::<String>(&object) {
            Ok(uid) => list.left_out.push(LeftOut { key, uid }),
            Err(_) => list.items.push(object),
        }
    }
    Some(list)
}
