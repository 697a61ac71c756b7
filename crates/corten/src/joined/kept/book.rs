//! What is kept under one name: objects, and when they are written next.
//!
//! ```text
//! {"of":"kubelet: pods  spec.nodeName=two","version":"4711"}
//! [["default","web",{"metadata":{…}}],…]
//! ```

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use bytes::Bytes;
use corten_client::KeptList;
use corten_meta::Key;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;

/// What comes together is written together.
const SOON: Duration = Duration::from_millis(100);
/// No file holds more, so that a cluster of any size does not fill a machine's disk.
pub(super) const BYTES_MAX: usize = 32 << 20;

#[derive(Default)]
pub(super) struct Book {
    objects: BTreeMap<Key, KeptObject>,
    version: String,
    bytes: usize,
    /// All that there is is in it; before that it is not written.
    is_whole: bool,
    pause: Duration,
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

/// What is written of a book.
pub(super) struct Text {
    pub(super) text: Vec<u8>,
    hash: u64,
}

impl Book {
    /// Of single answers: it is never incomplete.
    pub(super) fn of_answers(before: Option<&[u8]>) -> Self {
        let mut book = Self { is_whole: true, pause: Duration::from_secs(1), ..Self::default() };
        for (key, object) in before.and_then(read).map(|it| it.1).into_iter().flatten() {
            let essence = object.as_ref().map_or(0, |it| hash_of(it));
            book.put(key, object, essence);
        }
        book.on_disk = before.map(hash);
        book
    }

    /// Of a list, whose earlier text is on the disk.
    pub(super) fn of_list(before: Option<&[u8]>) -> Self {
        Self { on_disk: before.map(hash), ..Self::default() }
    }

    pub(super) fn apply(&mut self, key: Key, object: Option<Bytes>, essence: u64, now: Instant) {
        let is_same = |it: &KeptObject| it.essence == essence && it.object.is_some() == object.is_some();
        if !self.objects.get(&key).is_some_and(is_same) {
            self.changed.get_or_insert(now);
        }
        self.put(key, object, essence);
    }

    /// As [`Book::apply`], where every difference counts.
    pub(super) fn answer(&mut self, key: Key, object: Option<Bytes>, now: Instant) {
        let essence = object.as_ref().map_or(0, |it| hash_of(it));
        self.apply(key, object, essence, now);
    }

    fn put(&mut self, key: Key, object: Option<Bytes>, essence: u64) {
        self.bytes += size(object.as_ref());
        let old = self.objects.insert(key, KeptObject { object, essence });
        self.bytes -= old.map_or(0, |it| size(it.object.as_ref()));
    }

    pub(super) fn remove(&mut self, key: &Key, now: Instant) {
        if let Some(old) = self.objects.remove(key) {
            self.bytes -= size(old.object.as_ref());
            self.changed.get_or_insert(now);
        }
    }

    pub(super) fn whole(&mut self, version: String, pause: Duration, now: Instant) {
        (self.version, self.pause) = (version, pause);
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
        self.bytes > BYTES_MAX
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
        let items: Vec<Item<'_>> = self.objects.iter().filter_map(item).collect();
        let head = Head { of: of.to_owned(), version: self.version.clone() };
        let mut text = serde_json::to_vec(&head).ok()?;
        text.push(b'\n');
        serde_json::to_writer(&mut text, &items).ok()?;
        let hash = hash(&text);
        (self.on_disk != Some(hash)).then_some(Text { text, hash })
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

fn item<'a>((key, kept): (&'a Key, &'a KeptObject)) -> Option<Item<'a>> {
    let object = match &kept.object {
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
    Some(KeptList { items: objects.into_iter().filter_map(|it| it.1).collect(), version })
}
