//! Is a file a snapshot of etcd's? Its database, as bbolt lays it out, with the SHA-256 of it behind.

use std::{
    fmt,
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
};

use aws_lc_rs::digest;

/// Of a page that describes the database; it begins behind the page's own header (bbolt `page.go`, `db.go`).
const MAGIC: [u8; 4] = 0xED0C_DAED_u32.to_le_bytes();
const MAGIC_AT: usize = 16;
const HASH_BYTES: u64 = 32;
const BUFFER_BYTES: usize = 1 << 20;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    Missing(String),
    Foreign,
    Torn,
}

/// To be said behind the file's name.
impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(why) => write!(f, "cannot be read: {why}"),
            Self::Foreign => f.write_str("is no snapshot of etcd"),
            Self::Torn => f.write_str("is no whole snapshot of etcd: its checksum is that of other bytes"),
        }
    }
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::Missing(error.to_string())
    }
}

/// # Errors
/// It is none, or not whole.
pub(crate) fn check(path: &Path) -> Result<(), Unreadable> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
    let mut begin = Vec::new();
    reader.by_ref().take((MAGIC_AT + MAGIC.len()) as u64).read_to_end(&mut begin)?;
    if begin.get(MAGIC_AT..) != Some(&MAGIC) {
        return Err(Unreadable::Foreign);
    }
    let Some(rest) = length.checked_sub(HASH_BYTES + begin.len() as u64) else { return Err(Unreadable::Torn) };
    let mut hashed = digest::Context::new(&digest::SHA256);
    hashed.update(&begin);
    let mut database = reader.by_ref().take(rest);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match database.read(&mut buffer)? {
            0 => break,
            n => hashed.update(&buffer[..n]),
        }
    }
    let mut hash = Vec::new();
    reader.read_to_end(&mut hash)?;
    if hashed.finish().as_ref() == hash { Ok(()) } else { Err(Unreadable::Torn) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn whole_torn_and_foreign_files_are_told_apart() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("file");
        assert!(matches!(check(&path), Err(Unreadable::Missing(_))));
        let state = corten_etcd_snapshot::State { revision: 1, leases: &[] };
        let mut whole = Vec::new();
        corten_etcd_snapshot::write(Vec::new(), &state, &mut whole).expect("memory takes it");
        let of = |bytes: &[u8]| {
            fs::write(&path, bytes).expect("it can be written");
            check(&path)
        };
        assert_eq!(of(&whole), Ok(()));
        assert_eq!(of(&whole[..whole.len() - 1]), Err(Unreadable::Torn));
        assert_eq!(of(&whole[..MAGIC_AT + 4]), Err(Unreadable::Torn));
        let middle = whole.len() / 2;
        let mut flipped = whole.clone();
        flipped[middle] ^= 1;
        assert_eq!(of(&flipped), Err(Unreadable::Torn));
        for foreign in [&b""[..], b"a text", &[0; 100]] {
            assert_eq!(of(foreign), Err(Unreadable::Foreign));
        }
    }
}
