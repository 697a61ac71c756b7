//! The pages of a bbolt database that is written once.
//!
//! ```text
//! page      id 8 | flags 2 | count 2 | overflow 4                     all numbers little endian; overflow: pages that go on it
//! 0 and 1   meta: magic 4 | version 4 | page size 4 | flags 4 | root bucket 16 | freelist 8 | pages 8 | transaction 8 | checksum 8
//! 2         the freelist, empty
//! leaf      elements: flags 4 | position 4 | key length 4 | value length 4, then keys and values
//! branch    elements: position 4 | key length 4 | page 8, then keys
//! bucket    as the value of its name: root page 8 | sequence 8
//! ```

const PAGE: usize = 4_096;
const HEADER: usize = 16;
const ELEMENT: usize = 16;
const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const META: u16 = 0x04;
const FREELIST: u16 = 0x10;
/// Of an element whose value is a bucket.
const IS_BUCKET: u32 = 0x01;
const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;
/// Two meta pages and the freelist.
const FIRST: u64 = 3;

type Pair = (Vec<u8>, Vec<u8>);

/// A page that others name by its first key.
struct Child {
    first: Vec<u8>,
    page: u64,
}

pub(crate) struct Database {
    head: Vec<u8>,
    body: Vec<u8>,
    /// Names of buckets, with their roots.
    roots: Vec<Pair>,
}

impl Database {
    pub(crate) fn new() -> Self {
        Self { head: Vec::new(), body: Vec::new(), roots: Vec::new() }
    }

    /// Buckets come in the order of their names, pairs in that of their keys.
    pub(crate) fn bucket(&mut self, name: &str, pairs: Vec<Pair>) {
        let root = self.tree(pairs, 0);
        let value = [root.to_le_bytes(), 0_u64.to_le_bytes()].concat();
        self.roots.push((name.as_bytes().to_vec(), value));
    }

    pub(crate) fn finish(&mut self) {
        let roots = std::mem::take(&mut self.roots);
        let root = self.tree(roots, IS_BUCKET);
        let pages = self.next();
        for transaction in [0, 1] {
            let mut page = header(transaction, META, 0, 0);
            page.extend(meta(root, pages, transaction));
            self.head.extend(filled(page));
        }
        self.head.extend(filled(header(2, FREELIST, 0, 0)));
    }

    /// The file's content, in order.
    pub(crate) fn parts(&self) -> [&[u8]; 2] {
        [&self.head, &self.body]
    }

    /// The number of the next page.
    fn next(&self) -> u64 {
        FIRST + (self.body.len() / PAGE) as u64
    }

    /// Leaves, then branches over them until there is one root.
    fn tree(&mut self, pairs: Vec<Pair>, flags: u32) -> u64 {
        let mut children = Vec::new();
        for pairs in chunks(pairs, |(key, value)| key.len() + value.len()) {
            let first = pairs.first().map(|it| it.0.clone()).unwrap_or_default();
            let elements = pairs.iter().map(|(key, value)| {
                let lengths = [flags, 0, len(key), len(value)];
                (lengths.map(u32::to_le_bytes).concat(), 4, [&key[..], value].concat())
            });
            let page = self.push(LEAF, elements.collect());
            children.push(Child { first, page });
        }
        while children.len() > 1 {
            let mut parents = Vec::new();
            for children in chunks(children, |it| it.first.len()) {
                let first = children.first().map(|it| it.first.clone()).unwrap_or_default();
                let elements = children.iter().map(|it| {
                    let element = [&[0; 4][..], &len(&it.first).to_le_bytes(), &it.page.to_le_bytes()].concat();
                    (element, 0, it.first.clone())
                });
                let page = self.push(BRANCH, elements.collect());
                parents.push(Child { first, page });
            }
            children = parents;
        }
        children.first().map_or(0, |it| it.page)
    }

    /// Appends a page of elements, each with where it says the position of its data.
    fn push(&mut self, kind: u16, elements: Vec<(Vec<u8>, usize, Vec<u8>)>) -> u64 {
        let (id, count) = (self.next(), elements.len());
        let bytes = HEADER + elements.iter().map(|it| ELEMENT + it.2.len()).sum::<usize>();
        let overflow = bytes.div_ceil(PAGE).max(1) - 1;
        let mut page =
            header(id, kind, u16::try_from(count).unwrap_or(u16::MAX), u32::try_from(overflow).unwrap_or(u32::MAX));
        let mut data = Vec::new();
        for (at, (mut element, position, content)) in elements.into_iter().enumerate() {
            // From the element itself.
            let distance = (count - at) * ELEMENT + data.len();
            let distance = u32::try_from(distance).expect("a page holds one pair, or less than a page of them");
            element[position..position + 4].copy_from_slice(&distance.to_le_bytes());
            page.extend(element);
            data.extend(content);
        }
        page.extend(data);
        self.body.extend(filled(page));
        id
    }
}

/// As many as fit on a page, and at least one of them; no chunk at all is one empty page.
fn chunks<T>(all: Vec<T>, size: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let (mut chunks, mut bytes) = (vec![Vec::new()], HEADER);
    for it in all {
        let own = ELEMENT + size(&it);
        let last = chunks.last_mut().expect("there is one from the beginning");
        if bytes + own > PAGE && !last.is_empty() {
            chunks.push(vec![it]);
            bytes = HEADER + own;
        } else {
            last.push(it);
            bytes += own;
        }
    }
    chunks
}

fn header(id: u64, flags: u16, count: u16, overflow: u32) -> Vec<u8> {
    [&id.to_le_bytes()[..], &flags.to_le_bytes(), &count.to_le_bytes(), &overflow.to_le_bytes()].concat()
}

fn meta(root: u64, pages: u64, transaction: u64) -> Vec<u8> {
    let page_size = u32::try_from(PAGE).expect("it is small");
    let mut bytes = [MAGIC, VERSION, page_size, 0].map(u32::to_le_bytes).concat();
    bytes.extend([root, 0, 2, pages, transaction].map(u64::to_le_bytes).concat());
    bytes.extend(fnv1a(&bytes).to_le_bytes());
    bytes
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, it| (hash ^ u64::from(*it)).wrapping_mul(0x0100_0000_01b3))
}

/// Up to whole pages.
fn filled(mut page: Vec<u8>) -> Vec<u8> {
    page.resize(page.len().div_ceil(PAGE).max(1) * PAGE, 0);
    page
}

fn len(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("keys and values are bounded far below 4 GiB")
}
