//! The socket to the kernel's packet filter.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    message::{ACK, Batch, Bytes, DUMP, INET, NFTABLES, attributes},
    objects::{GET_CHAIN, GET_TABLE, NAME_OF_CHAIN, NAME_OF_SET},
};
use crate::netlink::{self, ERROR, error_of, text};

#[derive(Debug)]
pub(super) struct Socket(netlink::Socket);

/// One that stays open from transaction to transaction: a close waits until the kernel has freed what was taken away, once nobody
/// goes by it any more, which takes ten times as long as the transaction. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptSocket(Arc<Mutex<Option<Socket>>>);

impl KeptSocket {
    /// After a refusal there may be more to hear of it: the next transaction has a socket of its own.
    pub(super) fn commit(&self, batch: &Batch) -> Result<(), Refusal> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut socket = kept.take().map_or_else(Socket::open, Ok)?;
        socket.commit(batch)?;
        *kept = Some(socket);
        Ok(())
    }
}

/// Why a transaction was not taken.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) error: io::Error,
    /// The change the kernel stumbled over, if it said so.
    pub(super) at: Option<usize>,
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self { error, at: None }
    }
}

impl Socket {
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self(netlink::Socket::open(rustix::net::netlink::NETFILTER)?))
    }

    pub(super) fn commit(&mut self, batch: &Batch) -> Result<(), Refusal> {
        let room = batch.bytes.len().next_multiple_of(4096) + (64 << 10);
        self.0.make_room(room)?;
        self.0.send(&batch.bytes)?;
        let last = u32::try_from(batch.changes.len()).unwrap_or(u32::MAX);
        let mut refusal: Option<Refusal> = None;
        loop {
            let mut is_over = false;
            let read = self.0.receive(|answer| {
                if answer.kind == ERROR {
                    is_over |= answer.sequence == last || answer.sequence == 1;
                    if let Some(error) = error_of(&answer) {
                        let at =
                            usize::try_from(answer.sequence).ok().and_then(|it| batch.changes.get(it.checked_sub(1)?));
                        let at = at.copied().filter(|_| answer.sequence > 1);
                        refusal.get_or_insert(Refusal { error, at });
                    }
                }
                Ok(())
            });
            read?;
            if is_over {
                return refusal.map_or(Ok(()), Err);
            }
        }
    }

    /// The names of all chains, or sets, of a table.
    pub(super) fn names(&mut self, kind: u16, table: &str) -> io::Result<Vec<String>> {
        let name_at = if kind == GET_CHAIN { NAME_OF_CHAIN } else { NAME_OF_SET };
        let mut names = Vec::new();
        let fill = |bytes: &mut Bytes| {
            if kind != GET_CHAIN {
                bytes.text(1, table);
            }
        };
        let dumped = self.dump(NFTABLES << 8 | kind, INET, fill, |body| {
            let (mut of, mut name) = (String::new(), String::new());
            for (kind, value) in attributes(body) {
                match kind {
                    1 => of = text(value),
                    it if it == name_at => name = text(value),
                    _ => {}
                }
            }
            if of == table {
                names.push(name);
            }
        });
        match dumped {
            // There is no such table.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            other => other.map(|()| names),
        }
    }

    pub(super) fn has_table(&mut self, family: u8, table: &str) -> io::Result<bool> {
        let mut bytes = Bytes::default();
        bytes.message(NFTABLES << 8 | GET_TABLE, ACK, 1, family, |it| it.text(1, table));
        match self.ask(&bytes.0, |_| {}) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            other => other.map(|()| true),
        }
    }

    /// Gives what is behind the header of each message of a dump.
    pub(super) fn dump(
        &mut self,
        kind: u16,
        family: u8,
        fill: impl FnOnce(&mut Bytes),
        take: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        let mut bytes = Bytes::default();
        bytes.message(kind, DUMP, 1, family, fill);
        self.ask(&bytes.0, take)
    }

    /// As [`netlink::Socket::ask`].
    pub(super) fn ask(&mut self, request: &[u8], take: impl FnMut(&[u8])) -> io::Result<()> {
        self.0.ask(request, take)
    }
}
