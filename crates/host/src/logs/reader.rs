//! Reads a log: its end, or all of it, and what is written from then on.

use std::{io, os::unix::fs::MetadataExt, path::PathBuf, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use tokio::{io::AsyncReadExt, sync::watch};

use super::{LogOptions, line::Line, open, tail};

const BLOCK: usize = 64 << 10;
/// How often a followed log is looked at: short enough for a person, long enough for a thousand followers.
const PERIOD: Duration = Duration::from_millis(50);

/// The log's text, in pieces of any size. While following, it ends when `alive` is false (or dropped) and all is read.
pub fn read(
    path: PathBuf,
    options: LogOptions,
    alive: watch::Receiver<bool>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + Unpin {
    let reader = Reader {
        left: options.limit_bytes.unwrap_or(u64::MAX),
        path,
        options,
        alive,
        file: None,
        rotated: false,
        raw: BytesMut::new(),
        line_begins: true,
        ended: false,
    };
    stream::unfold(reader, |mut reader| async move {
        let piece = match reader.next().await {
            Ok(piece) => Ok(piece?),
            Err(error) => {
                reader.ended = true;
                Err(error)
            }
        };
        Some((piece, reader))
    })
    .boxed()
}

/// The last lines of a log, as text of at most so many bytes, cut at the front: what a container said before it failed.
pub async fn tail_of(path: PathBuf, lines: u64, bytes_max: usize) -> String {
    let options = LogOptions { tail_lines: Some(lines), ..LogOptions::default() };
    let (_, alive) = watch::channel(false);
    let mut pieces = read(path, options, alive);
    let mut text = Vec::new();
    while let Some(Ok(piece)) = pieces.next().await {
        text.extend_from_slice(&piece);
    }
    String::from_utf8_lossy(&text[text.len().saturating_sub(bytes_max)..]).into_owned()
}

struct Reader {
    path: PathBuf,
    options: LogOptions,
    alive: watch::Receiver<bool>,
    file: Option<tokio::fs::File>,
    /// The path leads to another file: this one is read to its end and left.
    rotated: bool,
    /// Bytes of a line whose end is not read yet.
    raw: BytesMut,
    /// Does the next part begin a line?
    line_begins: bool,
    /// How many bytes may still be handed out.
    left: u64,
    ended: bool,
}

impl Reader {
    /// The next piece; nothing at the end.
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        if self.file.is_none() && !self.ended {
            self.file = Some(self.open(self.options.tail_lines).await?);
        }
        while !self.ended && self.left > 0 {
            // Asked before reading: what the container wrote last is read after its end is known.
            let over = !self.options.follow || !*self.alive.borrow() || self.alive.has_changed().is_err();
            let file = self.file.as_mut().expect("opened above");
            self.raw.reserve(BLOCK);
            let read = (&mut *file).take(BLOCK as u64).read_buf(&mut self.raw).await?;
            let mut out = BytesMut::new();
            self.take_lines(&mut out);
            if read == 0 {
                if self.rotated {
                    self.take_rest(&mut out);
                    self.rotated = false;
                    self.file = Some(self.open(None).await?);
                } else if self.was_rotated().await {
                    // Once more: the runtime may have written here after we read, and before it opened the new one.
                    self.rotated = true;
                } else if over {
                    self.take_rest(&mut out);
                    self.ended = true;
                } else if out.is_empty() {
                    self.wait().await;
                }
            }
            if !out.is_empty() {
                return Ok(Some(self.cut(out)));
            }
        }
        Ok(None)
    }

    /// Waits for more to be there, or for the container's end.
    async fn wait(&mut self) {
        tokio::select! {
            biased;
            _ = self.alive.changed() => {}
            () = tokio::time::sleep(PERIOD) => {}
        }
    }

    async fn open(&self, tail_lines: Option<u64>) -> io::Result<tokio::fs::File> {
        let path = self.path.clone();
        let opened = tokio::task::spawn_blocking(move || {
            let mut file = open::open(&path)?;
            if let Some(count) = tail_lines {
                let size = file.metadata()?.len();
                let start = tail::start_of_last(&file, size, count)?;
                io::Seek::seek(&mut file, io::SeekFrom::Start(start))?;
            }
            Ok(file)
        });
        opened.await.map_err(io::Error::other)?.map(tokio::fs::File::from_std)
    }

    /// Does the path lead to another file now?
    async fn was_rotated(&self) -> bool {
        let Some(file) = self.file.as_ref().filter(|_| self.options.follow) else { return false };
        match (file.metadata().await, tokio::fs::symlink_metadata(&self.path).await) {
            (Ok(open), Ok(named)) => (open.dev(), open.ino()) != (named.dev(), named.ino()),
            // Between being moved away and being opened anew there is no file.
            _ => false,
        }
    }

    fn take_lines(&mut self, out: &mut BytesMut) {
        while let Some(newline) = self.raw.iter().position(|it| *it == b'\n') {
            let raw = self.raw.split_to(newline + 1);
            self.take_line(&raw[..newline], out);
        }
    }

    /// What is left at the end is a line without its newline.
    fn take_rest(&mut self, out: &mut BytesMut) {
        let raw = self.raw.split();
        self.take_line(&raw, out);
    }

    fn take_line(&mut self, raw: &[u8], out: &mut BytesMut) {
        let Some(line) = Line::parse(raw) else { return };
        let unwanted = self.options.stream.is_some_and(|it| it != line.stream)
            || self.options.since.is_some_and(|it| line.is_before(it));
        if unwanted {
            return;
        }
        if self.options.timestamps && self.line_begins {
            out.extend_from_slice(line.padded_time().as_bytes());
            out.extend_from_slice(b" ");
        }
        out.extend_from_slice(line.text);
        if line.full {
            out.extend_from_slice(b"\n");
        }
        self.line_begins = line.full;
    }

    fn cut(&mut self, mut out: BytesMut) -> Bytes {
        let allowed = usize::try_from(self.left).unwrap_or(usize::MAX);
        out.truncate(allowed);
        self.left -= out.len() as u64;
        out.freeze()
    }
}
