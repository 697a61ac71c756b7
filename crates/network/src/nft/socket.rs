//! The socket to the kernel's packet filter. Blocking, with a deadline; one for each piece of work.

use std::{io, os::fd::OwnedFd, time::Duration};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, netlink, recv, send, socket_with, sockopt,
};

use super::{
    message::{ACK, Answer, Batch, Bytes, DUMP, INET, NFTABLES, answers, attributes},
    objects::{GET_CHAIN, GET_TABLE, NAME_OF_CHAIN, NAME_OF_SET},
};

const DEADLINE: Duration = Duration::from_secs(30);
/// What the kernel says at once fits into this.
const ANSWER_BYTES: usize = 256 << 10;
const RECEIVE_BYTES: usize = 8 << 20;
const DONE: u16 = 3;
const ERROR: u16 = 2;

pub(super) struct Socket(OwnedFd);

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
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(netlink::NETFILTER))?;
        bind(&fd, &netlink::SocketAddrNetlink::new(0, 0))?;
        sockopt::set_socket_timeout(&fd, sockopt::Timeout::Recv, Some(DEADLINE))?;
        sockopt::set_socket_timeout(&fd, sockopt::Timeout::Send, Some(DEADLINE))?;
        // Errors of a large transaction come all at once.
        sockopt::set_socket_recv_buffer_size_force(&fd, RECEIVE_BYTES)?;
        Ok(Self(fd))
    }

    pub(super) fn commit(&mut self, batch: &Batch) -> Result<(), Refusal> {
        let room = batch.bytes.len().next_multiple_of(4096) + (64 << 10);
        sockopt::set_socket_send_buffer_size_force(&self.0, room).map_err(io::Error::from)?;
        self.send(&batch.bytes)?;
        let last = u32::try_from(batch.changes.len()).unwrap_or(u32::MAX);
        let mut refusal: Option<Refusal> = None;
        loop {
            let mut is_over = false;
            let read = self.receive(|answer| {
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

    /// Sends one request and takes the answers up to the last one.
    pub(super) fn ask(&mut self, request: &[u8], mut take: impl FnMut(&[u8])) -> io::Result<()> {
        self.send(request)?;
        let mut is_over = false;
        while !is_over {
            self.receive(|answer| {
                match answer.kind {
                    DONE => is_over = true,
                    ERROR => {
                        is_over = true;
                        return error_of(&answer).map_or(Ok(()), Err);
                    }
                    // Behind the netfilter header.
                    _ => take(answer.body.get(4..).unwrap_or_default()),
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        send(&self.0, bytes, SendFlags::empty())?;
        Ok(())
    }

    fn receive(&self, mut each: impl FnMut(Answer<'_>) -> io::Result<()>) -> io::Result<()> {
        let mut buffer = vec![0; ANSWER_BYTES];
        let (read, _) = recv(&self.0, &mut *buffer, RecvFlags::empty())?;
        answers(&buffer[..read]).try_for_each(&mut each)
    }
}

/// An acknowledgement is an error with the number 0.
fn error_of(answer: &Answer<'_>) -> Option<io::Error> {
    let number = answer.body.first_chunk::<4>().map_or(0, |it| i32::from_ne_bytes(*it));
    (number != 0).then(|| io::Error::from_raw_os_error(-number))
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value.split(|it| *it == 0).next().unwrap_or_default()).into_owned()
}
