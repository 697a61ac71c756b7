//! One question to one other server: over UDP from a port of its own, and over TCP where the answer is too long.
//!
//! What an attacker would have to guess: the port, which the kernel draws for each question, sixteen bits of the id, and
//! the case of each letter. A server that does not keep the case is asked again in small letters: whoever guessed before has
//! to guess again.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use corten_dns::{AnswerError, Question, Reading, ask};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UdpSocket},
    time::timeout,
};

const TCP_PATIENCE: Duration = Duration::from_secs(2);
const ANSWER_BYTES_MAX: usize = 4096;
/// So many wrong answers are an attack, not an accident.
const FOREIGN_MAX: usize = 16;

/// Asks once; `patience` is for each datagram.
pub(super) async fn exchange(server: SocketAddr, question: &Question, patience: Duration) -> io::Result<Reading> {
    let mut chance = [0; 36];
    aws_lc_rs::rand::fill(&mut chance).map_err(|_| io::Error::other("the machine has no random numbers"))?;
    let (ids, case) = chance.split_at(4);
    let message = |id: usize, case: &[u8]| {
        let mut asked = Vec::new();
        ask(question, u16::from_be_bytes([ids[id], ids[id + 1]]), case, &mut asked);
        asked
    };
    let odd = message(0, case);
    let plain = message(2, &[0]);
    let mut answer = timeout(patience, by_datagram(server, question, &odd)).await?;
    if answer.as_ref().is_ok_and(|it| !it.is_echo) {
        answer = timeout(patience, by_datagram(server, question, &plain)).await?;
    }
    match answer {
        Ok(reading) if !reading.is_truncated => Ok(reading),
        // Too long, too many strange answers, or one that cannot be read.
        Ok(_) => timeout(TCP_PATIENCE, by_connection(server, question, &plain)).await?,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            timeout(TCP_PATIENCE, by_connection(server, question, &plain)).await?
        }
        Err(error) => Err(error),
    }
}

async fn by_datagram(server: SocketAddr, question: &Question, asked: &[u8]) -> io::Result<Reading> {
    let any = if server.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let socket = UdpSocket::bind::<SocketAddr>(any).await?;
    // Connected: the kernel passes on what comes from there and nothing else.
    socket.connect(server).await?;
    socket.send(asked).await?;
    let mut packet = [0; ANSWER_BYTES_MAX];
    for _ in 0..FOREIGN_MAX {
        let n = socket.recv(&mut packet).await?;
        match Reading::of(&packet[..n], asked, question) {
            Ok(reading) => return Ok(reading),
            Err(AnswerError::Foreign) => {}
            Err(AnswerError::Malformed) => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

async fn by_connection(server: SocketAddr, question: &Question, asked: &[u8]) -> io::Result<Reading> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(asked.len()).map_err(|_| io::ErrorKind::InvalidData)?;
    stream.write_all(&[&length.to_be_bytes()[..], asked].concat()).await?;
    let mut packet = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut packet).await?;
    Reading::of(&packet, asked, question).map_err(|_| io::ErrorKind::InvalidData.into())
}
