//! The user service of the demo: an HTTP server whose every answer proves that it talked to redis and to MySQL.
//!
//! Both are asked over localhost while the request waits: containers of one Pod share its network. Standard library only,
//! so that one `rustc` makes one static program; hence the two protocols and SHA-1 below, as little of each as is needed.
//!
//! Environment: `PORT` (10086), `REDIS_ADDRESS` (127.0.0.1:6379), `MYSQL_ADDRESS` (127.0.0.1:3306), `MYSQL_ROOT_PASSWORD`.
//!
//! `/client`, and any datagram to the same port, is answered with the Pod's name and the address it was asked from.
//! `user ask tcp|udp ADDRESS:PORT [COUNT]` asks such a server, and says what it heard, or why nothing.

use std::{
    env, fs,
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

const TIMEOUT: Duration = Duration::from_secs(3);
const CONNECTIONS_MAX: usize = 64;
const REQUEST_BYTES_MAX: u64 = 16 << 10;

static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(|it| &**it).collect::<Vec<_>>()[..] {
        ["ask", protocol, address] => std::process::exit(ask(protocol, address, 1)),
        ["ask", protocol, address, count] => std::process::exit(ask(protocol, address, count.parse().unwrap_or(1))),
        _ => {}
    }
    leave_when_asked();
    let port: u16 = env::var("PORT").ok().and_then(|it| it.parse().ok()).unwrap_or(10086);
    let listener = match TcpListener::bind(("::", port)).or_else(|_| TcpListener::bind(("0.0.0.0", port))) {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("listen on port {port}: {error}");
            std::process::exit(1);
        }
    };
    let datagrams = UdpSocket::bind(("::", port)).or_else(|_| UdpSocket::bind(("0.0.0.0", port)));
    match datagrams {
        Ok(socket) => drop(thread::spawn(move || answer_datagrams(&socket))),
        Err(error) => eprintln!("listen for datagrams on port {port}: {error}"),
    }
    println!("listening on port {port}");
    for stream in listener.incoming().flatten() {
        if CONNECTIONS.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            let _ = respond(&stream, 503, "{\"error\":\"too many requests at once\"}\n", false);
            CONNECTIONS.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        thread::spawn(move || {
            if let Err(error) = serve(&stream) {
                eprintln!("request failed: {error}");
            }
            CONNECTIONS.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// The first process of a container has no default answer to SIGTERM: without this it would be killed after its grace.
fn leave_when_asked() {
    extern "C" {
        fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
        fn _exit(code: i32) -> !;
    }
    extern "C" fn leave(_: i32) {
        // SAFETY: _exit may be called from a signal handler.
        unsafe { _exit(0) }
    }
    const SIGINT: i32 = 2;
    const SIGTERM: i32 = 15;
    for number in [SIGINT, SIGTERM] {
        // SAFETY: the handler does nothing but leave.
        unsafe { signal(number, leave) };
    }
}

// --- Who asks, and who answers --------------------------------------------------------------------------------------------

/// The Pod's name, and the address it was asked from.
fn seen_from(peer: SocketAddr) -> String {
    let pod = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{} {}\n", pod.trim(), peer.ip().to_canonical())
}

fn answer_datagrams(socket: &UdpSocket) {
    let mut buffer = [0; 1500];
    loop {
        match socket.recv_from(&mut buffer) {
            Ok((_, peer)) => drop(socket.send_to(seen_from(peer).as_bytes(), peer)),
            // An earlier answer found nobody.
            Err(error) => eprintln!("receive a datagram: {error}"),
        }
    }
}

/// Asks `count` times, from one port where it is UDP; 1 where one question was not answered.
fn ask(protocol: &str, address: &str, count: usize) -> i32 {
    let Ok(address) = address.parse::<SocketAddr>() else {
        eprintln!("{address} is not ADDRESS:PORT");
        return 2;
    };
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let Ok(socket) = UdpSocket::bind(any) else { return 2 };
    let mut code = 0;
    for _ in 0..count {
        let heard = if protocol == "udp" { ask_udp(&socket, address) } else { ask_tcp(address) };
        match heard {
            Ok(text) => print!("{text}"),
            Err(error) => {
                println!("{}", error.kind());
                code = 1;
            }
        }
    }
    code
}

fn ask_udp(socket: &UdpSocket, address: SocketAddr) -> io::Result<String> {
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.connect(address)?;
    socket.send(b"who?\n")?;
    let mut buffer = [0; 1500];
    let length = socket.recv(&mut buffer)?;
    Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

fn ask_tcp(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(format!("GET /client HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.split_once("\r\n\r\n").map_or_else(|| answer.clone(), |it| it.1.to_owned()))
}

// --- HTTP -------------------------------------------------------------------------------------------------------------

fn serve(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut lines = BufReader::new(stream.take(REQUEST_BYTES_MAX)).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let head = method == "HEAD";
    let path = target.split('?').next().unwrap_or_default();
    let (code, body) = match (method, path) {
        ("GET" | "HEAD", "/healthz") => (200, "ok\n".to_owned()),
        ("GET" | "HEAD", "/client") => (200, seen_from(stream.peer_addr()?)),
        ("GET" | "HEAD", "/") => answer(),
        ("GET" | "HEAD", _) => (404, "{\"error\":\"not found\"}\n".to_owned()),
        _ => (405, "{\"error\":\"only GET is answered\"}\n".to_owned()),
    };
    println!("{method} {path} {code}");
    respond(stream, code, &body, head)
}

fn respond(mut stream: &TcpStream, code: u16, body: &str, head: bool) -> io::Result<()> {
    let reason = match code {
        200 => "OK",
        404 => "Not Found",
        405 => "Method Not Allowed",
        _ => "Service Unavailable",
    };
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {code} {reason}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{}",
        if head { "" } else { body }
    );
    stream.write_all(text.as_bytes())
}

/// Asks both; says which one is not there.
fn answer() -> (u16, String) {
    let pod = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let redis = ask_redis().map_err(|it| format!("redis is not up: {it}"));
    let mysql = ask_mysql().map_err(|it| format!("mysql is not up: {it}"));
    let part = |result: &Result<String, String>| match result {
        Ok(json) => json.clone(),
        Err(error) => format!("{{\"error\":{}}}", quoted(error)),
    };
    let body = format!(
        "{{\"service\":\"user\",\"pod\":{},\"redis\":{},\"mysql\":{}}}\n",
        quoted(pod.trim()),
        part(&redis),
        part(&mysql)
    );
    (if redis.is_ok() && mysql.is_ok() { 200 } else { 503 }, body)
}

fn quoted(text: &str) -> String {
    let mut json = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => json.extend(['\\', character]),
            character if character < ' ' => json += &format!("\\u{:04x}", u32::from(character)),
            character => json.push(character),
        }
    }
    json + "\""
}

fn connect(variable: &str, default: &str) -> io::Result<TcpStream> {
    let address = env::var(variable).unwrap_or_else(|_| default.to_owned());
    let address: SocketAddr =
        address.parse().map_err(|_| invalid(&format!("{variable} must be ADDRESS:PORT, not {address}")))?;
    let failed = |error: io::Error| io::Error::new(error.kind(), format!("connect to {address}: {error}"));
    let stream = TcpStream::connect_timeout(&address, TIMEOUT).map_err(failed)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(stream)
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

// --- redis ------------------------------------------------------------------------------------------------------------

fn ask_redis() -> io::Result<String> {
    let mut redis = BufReader::new(connect("REDIS_ADDRESS", "127.0.0.1:6379")?);
    let pong = redis_call(&mut redis, &["PING"])?;
    let visits: u64 = redis_call(&mut redis, &["INCR", "user-service:visits"])?.parse().map_err(|_| invalid("not a count"))?;
    let info = redis_call(&mut redis, &["INFO", "server"])?;
    let version = info.lines().find_map(|it| it.strip_prefix("redis_version:")).unwrap_or_default();
    Ok(format!("{{\"ping\":{},\"version\":{},\"visits\":{visits}}}", quoted(&pong), quoted(version.trim())))
}

/// One command, and its answer as text.
fn redis_call(redis: &mut BufReader<TcpStream>, words: &[&str]) -> io::Result<String> {
    let mut command = format!("*{}\r\n", words.len());
    for word in words {
        command += &format!("${}\r\n{word}\r\n", word.len());
    }
    redis.get_mut().write_all(command.as_bytes())?;
    let mut line = String::new();
    redis.by_ref().take(64 << 10).read_line(&mut line)?;
    let (kind, rest) = line.trim_end().split_at_checked(1).ok_or_else(|| invalid("redis closed the connection"))?;
    match kind {
        "+" | ":" => Ok(rest.to_owned()),
        "-" => Err(invalid(&format!("redis says {rest}"))),
        "$" => {
            let length: usize = rest.parse().ok().filter(|it| *it <= 1 << 20).ok_or_else(|| invalid("no such length"))?;
            let mut text = vec![0; length + 2];
            redis.read_exact(&mut text)?;
            text.truncate(length);
            Ok(String::from_utf8_lossy(&text).into_owned())
        }
        _ => Err(invalid("redis gave an answer of an unknown kind")),
    }
}

// --- MySQL ------------------------------------------------------------------------------------------------------------

fn ask_mysql() -> io::Result<String> {
    let password = env::var("MYSQL_ROOT_PASSWORD").unwrap_or_default();
    let mut mysql = Mysql::log_in(connect("MYSQL_ADDRESS", "127.0.0.1:3306")?, "root", &password)?;
    mysql.query("CREATE DATABASE IF NOT EXISTS user_service")?;
    mysql.query(
        "CREATE TABLE IF NOT EXISTS user_service.visits \
         (id INT AUTO_INCREMENT PRIMARY KEY, at TIMESTAMP DEFAULT CURRENT_TIMESTAMP)",
    )?;
    mysql.query("INSERT INTO user_service.visits () VALUES ()")?;
    let row = mysql.query("SELECT VERSION(), COUNT(*) FROM user_service.visits")?;
    let [version, visits] = row.as_slice() else { return Err(invalid("the query has no row")) };
    let visits: u64 = visits.parse().map_err(|_| invalid("not a count"))?;
    Ok(format!("{{\"version\":{},\"visits\":{visits}}}", quoted(version)))
}

struct Mysql {
    stream: TcpStream,
    sequence: u8,
}

const CLIENT_PROTOCOL_41: u32 = 1 << 9;
const CLIENT_SECURE_CONNECTION: u32 = 1 << 15;
const CLIENT_PLUGIN_AUTH: u32 = 1 << 19;
const UTF8: u8 = 33;
const PACKET_BYTES_MAX: usize = 1 << 20;
const COM_QUERY: u8 = 3;

impl Mysql {
    fn log_in(stream: TcpStream, user: &str, password: &str) -> io::Result<Self> {
        let mut this = Self { stream, sequence: 0 };
        let nonce = nonce(&this.receive()?).ok_or_else(|| invalid("mysql greets in an unknown way"))?;
        let mut packet = Vec::new();
        let capabilities = CLIENT_PROTOCOL_41 | CLIENT_SECURE_CONNECTION | CLIENT_PLUGIN_AUTH;
        packet.extend(capabilities.to_le_bytes());
        packet.extend((PACKET_BYTES_MAX as u32).to_le_bytes());
        packet.push(UTF8);
        packet.extend([0; 23]);
        packet.extend(user.bytes().chain([0]));
        let proof = scramble(password, &nonce);
        packet.push(proof.len() as u8);
        packet.extend(proof);
        packet.extend(b"mysql_native_password\0");
        this.send(&packet)?;
        let mut answer = this.receive()?;
        // The server would rather have another way: its name, and a new nonce.
        if answer.first() == Some(&0xfe) {
            let mut parts = answer[1..].splitn(2, |it| *it == 0);
            let plugin = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
            if plugin != "mysql_native_password" {
                return Err(invalid(&format!("mysql wants the password by {plugin}")));
            }
            let nonce = parts.next().unwrap_or_default();
            this.send(&scramble(password, nonce.strip_suffix(&[0]).unwrap_or(nonce)))?;
            answer = this.receive()?;
        }
        check(&answer)?;
        Ok(this)
    }

    /// The first row of the answer; nothing where it has none.
    fn query(&mut self, sql: &str) -> io::Result<Vec<String>> {
        self.sequence = 0;
        let mut packet = vec![COM_QUERY];
        packet.extend(sql.bytes());
        self.send(&packet)?;
        let first = self.receive()?;
        check(&first)?;
        if first.first() == Some(&0) {
            return Ok(Vec::new());
        }
        while !is_end(&self.receive()?) {} // the columns
        let mut row = Vec::new();
        loop {
            let packet = self.receive()?;
            check(&packet)?;
            if is_end(&packet) {
                return Ok(row);
            }
            if row.is_empty() {
                row = fields(&packet).ok_or_else(|| invalid("mysql gave a broken row"))?;
            }
        }
    }

    fn send(&mut self, payload: &[u8]) -> io::Result<()> {
        let mut packet = (payload.len() as u32).to_le_bytes().to_vec();
        packet[3] = self.sequence;
        packet.extend(payload);
        self.sequence = self.sequence.wrapping_add(1);
        self.stream.write_all(&packet)
    }

    fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head)?;
        self.sequence = head[3].wrapping_add(1);
        let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
        if length > PACKET_BYTES_MAX {
            return Err(invalid("mysql gave a packet that is too large"));
        }
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload)?;
        Ok(payload)
    }
}

/// The greeting: protocol 10, version, connection, 8 bytes of the nonce, ..., the other 12.
fn nonce(greeting: &[u8]) -> Option<Vec<u8>> {
    if greeting.first() == Some(&0xff) {
        return None;
    }
    let version_end = greeting.iter().skip(1).position(|it| *it == 0)? + 1;
    let first = greeting.get(version_end + 5..version_end + 13)?;
    // A zero, capabilities (2), character set, status (2), capabilities (2), length of the nonce, ten zeros.
    let second = greeting.get(version_end + 32..version_end + 44)?;
    Some([first, second].concat())
}

fn is_end(packet: &[u8]) -> bool {
    packet.first() == Some(&0xfe) && packet.len() < 9
}

fn check(packet: &[u8]) -> io::Result<()> {
    match packet {
        // An error: its number (2), a mark and its state (6), its text.
        [0xff, _, _, text @ ..] => {
            let text = if text.first() == Some(&b'#') { text.get(6..).unwrap_or_default() } else { text };
            Err(invalid(&format!("mysql says {}", String::from_utf8_lossy(text))))
        }
        _ => Ok(()),
    }
}

/// A row: strings, each after its length.
fn fields(mut packet: &[u8]) -> Option<Vec<String>> {
    let mut fields = Vec::new();
    while let Some((&mark, rest)) = packet.split_first() {
        let (length, rest) = match mark {
            0xfb => (0, rest), // NULL
            0xfc => (usize::from(u16::from_le_bytes(rest.get(..2)?.try_into().ok()?)), &rest[2..]),
            short => (usize::from(short), rest),
        };
        fields.push(String::from_utf8_lossy(rest.get(..length)?).into_owned());
        packet = &rest[length..];
    }
    Some(fields)
}

/// Proves the password without saying it: SHA1(password) xor SHA1(nonce, SHA1(SHA1(password))).
fn scramble(password: &str, nonce: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = sha1(password.as_bytes());
    let mixed = sha1(&[nonce, &sha1(&once)].concat());
    once.iter().zip(mixed).map(|(a, b)| a ^ b).collect()
}

/// FIPS 180-4.
fn sha1(message: &[u8]) -> [u8; 20] {
    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        let mut words = [0u32; 80];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        for i in 16..80 {
            words[i] = (words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (i, word) in words.iter().enumerate() {
            let (mix, constant) = match i / 20 {
                0 => ((b & c) | (!b & d), 0x5a82_7999),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6),
            };
            let next =
                a.rotate_left(5).wrapping_add(mix).wrapping_add(e).wrapping_add(constant).wrapping_add(*word);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
        }
        for (sum, part) in state.iter_mut().zip([a, b, c, d, e]) {
            *sum = sum.wrapping_add(part);
        }
    }
    let mut digest = [0; 20];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|it| format!("{it:02x}")).collect()
    }

    #[test]
    fn hashes_what_the_standard_hashes() {
        for (message, digest) in [
            ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
            ),
        ] {
            assert_eq!(hex(&sha1(message.as_bytes())), digest, "{message}");
        }
    }

    #[test]
    fn quotes_and_reads_rows() {
        assert_eq!(quoted("a\"b\\c\nd"), "\"a\\\"b\\\\c\\u000ad\"");
        assert_eq!(fields(b"\x02ab\xfb\x00"), Some(vec!["ab".to_owned(), String::new(), String::new()]));
        assert_eq!(fields(b"\x05ab"), None);
        assert!(scramble("", b"x").is_empty());
    }
}
