//! Audit records as lines of a file that is rotated by size: `audit.log`, then `audit.log.1`, `audit.log.2`, …

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::mpsc, task::JoinHandle};

use super::Sink;

/// Records that wait to be written.
const QUEUE: usize = 4096;
/// How long closing waits for what is queued.
const CLOSE_DEADLINE: Duration = Duration::from_secs(5);

/// How large a file grows, and how many full ones are kept.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    pub bytes_max: u64,
    pub files_kept: u32,
}

impl Default for Rotation {
    fn default() -> Self {
        Self { bytes_max: 100 << 20, files_kept: 5 }
    }
}

/// Writes records from one blocking task; close it to have the last ones on disk.
pub struct FileLog {
    queue: Mutex<Option<mpsc::Sender<Vec<u8>>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    dropped: AtomicU64,
}

impl FileLog {
    /// # Errors
    /// The file cannot be opened for appending.
    pub fn open(path: &Path, rotation: Rotation) -> io::Result<Self> {
        let mut target = LogFile::open(path, rotation)?;
        let (queue, mut records) = mpsc::channel::<Vec<u8>>(QUEUE);
        let writer = tokio::task::spawn_blocking(move || {
            while let Some(record) = records.blocking_recv() {
                if let Err(error) = target.write(&record) {
                    tracing::error!(%error, path = %target.path.display(), "cannot write an audit record");
                }
            }
        });
        Ok(Self { queue: Mutex::new(Some(queue)), writer: Mutex::new(Some(writer)), dropped: AtomicU64::new(0) })
    }

    /// Writes what is queued and ends the writer. Records that come later are dropped.
    pub async fn close(&self) {
        drop(self.queue.lock().take());
        let writer = self.writer.lock().take();
        if let Some(writer) = writer
            && tokio::time::timeout(CLOSE_DEADLINE, writer).await.is_err()
        {
            tracing::warn!("the audit log was not written to its end in time");
        }
    }
}

impl Sink for FileLog {
    fn record(&self, line: Vec<u8>) {
        let sent = self.queue.lock().as_ref().is_some_and(|it| it.try_send(line).is_ok());
        if !sent {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// The open file and how full it is.
struct LogFile {
    path: PathBuf,
    rotation: Rotation,
    file: File,
    bytes: u64,
}

impl LogFile {
    fn open(path: &Path, rotation: Rotation) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), rotation, file, bytes })
    }

    fn write(&mut self, record: &[u8]) -> io::Result<()> {
        let size = record.len() as u64 + 1;
        if self.bytes > 0 && self.bytes + size > self.rotation.bytes_max {
            self.rotate()?;
        }
        // One write call: a line is never torn by a crash between its text and its end.
        let mut line = Vec::with_capacity(record.len() + 1);
        line.extend_from_slice(record);
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.bytes += size;
        Ok(())
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    }

    fn rotate(&mut self) -> io::Result<()> {
        let kept = self.rotation.files_kept;
        if kept == 0 {
            fs::remove_file(&self.path)?;
        }
        for number in (1..kept).rev() {
            match fs::rename(self.numbered(number), self.numbered(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if kept > 0 {
            fs::rename(&self.path, self.numbered(1))?;
        }
        *self = Self::open(&self.path, self.rotation)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
