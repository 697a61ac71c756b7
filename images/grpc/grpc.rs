//! A server of the gRPC health protocol for the tests of probes: service `` is well, `sick` is not, others are unknown.
//!
//! Standard library only, so that one `rustc` makes one static program; hence as little HTTP/2 as one call needs. The first
//! argument is the port; a second one names a file without which nothing is well.

use std::{
    env,
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    thread,
    time::Duration,
};

const PREFACE_BYTES: usize = 24;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const FRAME_BYTES_MAX: usize = 16 << 10;

fn main() {
    let port: u16 = env::args().nth(1).and_then(|it| it.parse().ok()).unwrap_or(5000);
    let listener = TcpListener::bind(("::", port)).expect("a free port");
    println!("listening on port {port}");
    for stream in listener.incoming().flatten() {
        thread::spawn(move || serve(stream));
    }
}

fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.read_exact(&mut [0; PREFACE_BYTES])?;
    write(&mut stream, SETTINGS, 0, 0, &[])?;
    let mut message = Vec::new();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let (kind, flags) = (head[3], head[4]);
        let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let mut body = vec![0; length.min(FRAME_BYTES_MAX)];
        stream.read_exact(&mut body)?;
        match kind {
            SETTINGS if flags & ACK == 0 => write(&mut stream, SETTINGS, ACK, 0, &[])?,
            PING if flags & ACK == 0 => write(&mut stream, PING, ACK, 0, &body)?,
            DATA => {
                message.extend_from_slice(&body);
                if flags & END_STREAM != 0 {
                    answer(&mut stream, id, &std::mem::take(&mut message))?;
                }
            }
            _ => {}
        }
    }
}

/// A message is five bytes of head, then field 1, the service's name: `0x0a`, its length, its text.
fn answer(stream: &mut TcpStream, id: u32, body: &[u8]) -> io::Result<()> {
    let service = body.get(7..).map(String::from_utf8_lossy).unwrap_or_default();
    let is_well = env::args().nth(2).is_none_or(|it| Path::new(&it).exists());
    let status = match &*service {
        "" if is_well => Some(1),
        "" | "sick" => Some(2),
        _ => None,
    };
    println!("asked for {service:?}: {status:?}");
    // `:status: 200` of the static table, then `content-type` by its place there.
    let mut head = vec![0x88, 0x0f, 0x10];
    text(&mut head, "application/grpc");
    write(stream, HEADERS, END_HEADERS, id, &head)?;
    if let Some(status) = status {
        write(stream, DATA, 0, id, &[0, 0, 0, 0, 2, 0x08, status])?;
    }
    let mut trailers = vec![0];
    text(&mut trailers, "grpc-status");
    text(&mut trailers, if status.is_some() { "0" } else { "5" });
    trailers.push(0);
    text(&mut trailers, "grpc-message");
    text(&mut trailers, if status.is_some() { "" } else { "unknown service" });
    write(stream, HEADERS, END_HEADERS | END_STREAM, id, &trailers)
}

/// Its length, which is below 127, and itself.
fn text(out: &mut Vec<u8>, text: &str) {
    out.push(text.len() as u8);
    out.extend_from_slice(text.as_bytes());
}

fn write(stream: &mut TcpStream, kind: u8, flags: u8, id: u32, body: &[u8]) -> io::Result<()> {
    let length = (body.len() as u32).to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend_from_slice(&id.to_be_bytes());
    frame.extend_from_slice(body);
    stream.write_all(&frame)
}
