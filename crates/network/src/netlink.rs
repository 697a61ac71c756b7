//! Netlink: messages to the kernel with attributes within attributes, and its answers.

use std::{io, os::fd::OwnedFd, time::Duration};

use corten_machine::MachineError;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, bind, netlink, recv, send, socket_with,
    sockopt,
};

const HEADER: usize = 16;
pub(crate) const REQUEST: u16 = 1;
pub(crate) const ACK: u16 = 4;
pub(crate) const DUMP: u16 = 0x300;
const NESTED: u16 = 0x8000;
const DONE: u16 = 3;
pub(crate) const ERROR: u16 = 2;

const DEADLINE: Duration = Duration::from_secs(30);
/// What the kernel says at once fits into this.
const ANSWER_BYTES: usize = 256 << 10;
const RECEIVE_BYTES: usize = 8 << 20;

/// Bytes under construction. Lengths are filled in where a part ends.
#[derive(Debug, Default)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Bytes {
    /// With the header of the packet filter.
    pub(crate) fn message(&mut self, kind: u16, flags: u16, sequence: u32, family: u8, fill: impl FnOnce(&mut Self)) {
        self.framed(kind, flags, sequence, [family, 0, 0, 0], fill);
    }

    /// `head` is what all messages of a subsystem begin with.
    pub(crate) fn framed(&mut self, kind: u16, flags: u16, sequence: u32, head: [u8; 4], fill: impl FnOnce(&mut Self)) {
        let at = self.0.len();
        self.0.extend([0; 4]);
        self.0.extend(kind.to_ne_bytes());
        self.0.extend((flags | REQUEST).to_ne_bytes());
        self.0.extend(sequence.to_ne_bytes());
        self.0.extend([0; 4]);
        self.0.extend(head);
        fill(self);
        let length = u32::try_from(self.0.len() - at).expect("a message is bounded by what goes into it");
        self.0[at..at + 4].copy_from_slice(&length.to_ne_bytes());
    }

    pub(crate) fn attribute(&mut self, kind: u16, value: &[u8]) {
        let length = u16::try_from(value.len() + 4).expect("values are names, addresses and numbers");
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.align();
    }

    pub(crate) fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let at = self.0.len();
        self.0.extend([0; 2]);
        self.0.extend((kind | NESTED).to_ne_bytes());
        fill(self);
        let length = u16::try_from(self.0.len() - at).expect("lists are cut before they are too long");
        self.0[at..at + 2].copy_from_slice(&length.to_ne_bytes());
    }

    pub(crate) fn text(&mut self, kind: u16, value: &str) {
        self.attribute(kind, &[value.as_bytes(), &[0]].concat());
    }

    pub(crate) fn number(&mut self, kind: u16, value: u32) {
        self.attribute(kind, &value.to_be_bytes());
    }

    fn align(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }
}

/// The attributes of what the kernel sent: kind and value. What does not add up ends the list.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let [a, b, c, d, ..] = *bytes else { return None };
        let length = usize::from(u16::from_ne_bytes([a, b]));
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([c, d]) & 0x3fff, value))
    })
}

/// One message of the kernel's: its kind, its sequence number, and what is behind the header.
pub(crate) struct Answer<'a> {
    pub(crate) kind: u16,
    pub(crate) sequence: u32,
    pub(crate) body: &'a [u8],
}

pub(crate) fn answers(mut bytes: &[u8]) -> impl Iterator<Item = Answer<'_>> {
    std::iter::from_fn(move || {
        let header = bytes.get(..HEADER)?;
        let word = |at: usize| u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let length = usize::try_from(word(0)).ok()?;
        let body = bytes.get(HEADER..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Answer { kind: u16::from_ne_bytes([header[4], header[5]]), sequence: word(8), body })
    })
}

/// The socket to a part of the kernel. Blocking, with a deadline.
#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

impl Socket {
    pub(crate) fn open(protocol: Protocol) -> io::Result<Self> {
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(protocol))?;
        bind(&fd, &netlink::SocketAddrNetlink::new(0, 0))?;
        sockopt::set_socket_timeout(&fd, sockopt::Timeout::Recv, Some(DEADLINE))?;
        sockopt::set_socket_timeout(&fd, sockopt::Timeout::Send, Some(DEADLINE))?;
        // Errors of a large transaction come all at once.
        sockopt::set_socket_recv_buffer_size_force(&fd, RECEIVE_BYTES)?;
        Ok(Self(fd))
    }

    /// Room for a message of this size.
    pub(crate) fn make_room(&self, bytes: usize) -> io::Result<()> {
        Ok(sockopt::set_socket_send_buffer_size_force(&self.0, bytes)?)
    }

    /// Sends one request and takes the answers up to the last one: what is behind the subsystem's header of each.
    pub(crate) fn ask(&mut self, request: &[u8], mut take: impl FnMut(&[u8])) -> io::Result<()> {
        self.try_ask(request, |it| {
            take(it);
            Ok(())
        })
    }

    /// As [`Socket::ask`], up to an error of `take`: then answers are left, and the socket is of no more use.
    pub(crate) fn try_ask(&mut self, request: &[u8], mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
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
                    _ => take(answer.body.get(4..).unwrap_or_default())?,
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<()> {
        send(&self.0, bytes, SendFlags::empty())?;
        Ok(())
    }

    pub(crate) fn receive(&self, mut each: impl FnMut(Answer<'_>) -> io::Result<()>) -> io::Result<()> {
        let mut buffer = vec![0; ANSWER_BYTES];
        let (read, _) = recv(&self.0, &mut *buffer, RecvFlags::empty())?;
        answers(&buffer[..read]).try_for_each(&mut each)
    }
}

/// An acknowledgement is an error with the number 0.
pub(crate) fn error_of(answer: &Answer<'_>) -> Option<io::Error> {
    let number = answer.body.first_chunk::<4>().map_or(0, |it| i32::from_ne_bytes(*it));
    (number != 0).then(|| io::Error::from_raw_os_error(-number))
}

/// A name, as the kernel ends it.
pub(crate) fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value.split(|it| *it == 0).next().unwrap_or_default()).into_owned()
}

/// Has a thread wait for the kernel.
pub(crate) async fn blocking<T: Send + 'static>(
    doing: &'static str,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, MachineError> {
    let done = tokio::task::spawn_blocking(work).await.map_err(io::Error::other).and_then(|it| it);
    done.map_err(|cause| MachineError::Io { doing: doing.to_owned(), cause })
}
