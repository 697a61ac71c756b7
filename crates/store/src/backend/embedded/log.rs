//! The end of the log, where changes are appended.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    io,
};

use super::{
    disk::{Disk, DiskFile, LOG},
    frame::{HEADER, Header, LOG_MAGIC, encode_change, write_frame},
};
use crate::{Change, Revision};

pub(super) struct Log {
    file: DiskFile,
    salt: u32,
    /// Up to here everything is durable.
    length: u64,
    /// From `length` to here there are zeros, or may be.
    allocated: u64,
    /// How much is allocated at a time.
    ahead: u64,
    buffer: Vec<u8>,
}

/// Why changes could not be appended.
#[derive(Debug)]
pub(super) enum AppendError {
    /// The log is as it was: another attempt may go well.
    Undone(io::Error),
    /// What the disk holds is not known any more.
    Torn(io::Error),
}

impl Log {
    /// Begins a log of what comes after `revision`.
    pub(super) fn create(disk: &Disk, revision: Revision, ahead: u64) -> io::Result<Self> {
        let salt = salt();
        let file = disk.begin(revision, LOG)?;
        let begun = file
            .write_at(&Header::new(salt, revision).encode(LOG_MAGIC), 0)
            .and_then(|()| disk.finish(&file, revision, LOG));
        if let Err(error) = begun {
            disk.abandon(revision, LOG);
            return Err(error);
        }
        let length = HEADER as u64;
        Ok(Self { file, salt, length, allocated: length, ahead, buffer: Vec::new() })
    }

    /// Goes on where a log ends; what is behind `length` was torn by a crash and is cut off.
    ///
    /// What an older version began is of the newest from now on: else an older program would take for damaged what it does not know. The
    /// header is in one sector, which a disk writes whole or not at all.
    pub(super) fn resume(file: DiskFile, header: Header, length: u64, ahead: u64) -> io::Result<Self> {
        file.truncate(length)?;
        if header.is_older() {
            file.write_at(&header.encode(LOG_MAGIC), 0)?;
        }
        file.sync()?;
        let salt = header.salt;
        Ok(Self { file, salt, length, allocated: length, ahead, buffer: Vec::new() })
    }

    /// Cuts off what was allocated and not used.
    pub(super) fn finish(&self) -> io::Result<()> {
        self.file.truncate(self.length)
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Is all of it still there that was written? Who writes to the file from elsewhere may cut it.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.file.length()? < self.length {
            return Err(io::Error::other("the log was cut by somebody else while the store was open"));
        }
        Ok(())
    }

    /// The changes are durable when this returns.
    pub(super) fn append(&mut self, changes: &[Change]) -> Result<(), AppendError> {
        self.buffer.clear();
        write_frame(self.salt, &mut self.buffer, |out| changes.iter().for_each(|it| encode_change(it, out)));
        self.allocate_ahead();
        if let Err(error) = self.file.write_at(&self.buffer, self.length) {
            return Err(self.undo(error));
        }
        // After a failed sync the kernel may hold pages for clean that never reached the disk, so nothing that is
        // written later could be trusted either.
        self.file.sync().map_err(|error| match self.undo(error) {
            AppendError::Undone(error) | AppendError::Torn(error) => AppendError::Torn(error),
        })?;
        self.length += self.buffer.len() as u64;
        // One large batch shall not be remembered for ever.
        self.buffer.shrink_to(1 << 20);
        Ok(())
    }

    fn allocate_ahead(&mut self) {
        let needed = self.length + self.buffer.len() as u64;
        if self.ahead == 0 || needed <= self.allocated {
            return;
        }
        // A file system that cannot, or a full one, leaves it to the write itself to grow the file or to fail.
        if let Err(error) = self.file.allocate(self.length, needed - self.length + self.ahead) {
            tracing::debug!(%error, "cannot allocate room for the log");
        }
        self.allocated = needed + self.ahead;
    }

    fn undo(&mut self, error: io::Error) -> AppendError {
        self.allocated = self.length;
        match self.file.truncate(self.length).and_then(|()| self.file.sync()) {
            Ok(()) => AppendError::Undone(error),
            Err(_) => AppendError::Torn(error),
        }
    }
}

/// Need not be secret from the machine, only unknown to who writes values.
pub(super) fn salt() -> u32 {
    let random = RandomState::new().build_hasher().finish().to_le_bytes();
    u32::from_le_bytes([random[0], random[1], random[2], random[3]])
}
