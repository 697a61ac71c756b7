//! At which ports processes of the machine answer who asks at the node's addresses.

mod diagnostics;

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read},
    net::IpAddr,
    path::Path,
};

use corten_proxy::rules::Protocol;

/// The kernel's tables of sockets: those of both families, and the state of one that waits for who asks.
const TABLES: [(&str, Protocol, &str); 4] = [
    ("tcp", Protocol::Tcp, "0A"),
    ("tcp6", Protocol::Tcp, "0A"),
    ("udp", Protocol::Udp, "07"),
    ("udp6", Protocol::Udp, "07"),
];
/// A Pod that listens at more ports, or has that many sockets, is not looked into: what is read of it must have an end.
const LISTENING_MAX: usize = 256;
/// Room for 6,000 sockets, with 150 bytes each.
const TABLE_BYTES_MAX: u64 = 1 << 20;
/// Where the machine does not say it: the kernel's own choice.
const EPHEMERAL_FROM: u16 = 32_768;

/// The ports at `addresses`. Of UDP, where who asks and who answers look alike, only such as nobody is given by chance.
pub fn listening(addresses: &[IpAddr]) -> BTreeSet<(Protocol, u16)> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let ephemeral = range.split_whitespace().next().and_then(|it| it.parse().ok()).unwrap_or(EPHEMERAL_FROM);
    let proc = Path::new("/proc/self");
    let is_here = |it: IpAddr| it.is_unspecified() || addresses.contains(&it);
    let tcp = diagnostics::listeners().ok().or_else(|| tables(proc, Protocol::Tcp, u64::MAX)).unwrap_or_default();
    let udp = tables(proc, Protocol::Udp, u64::MAX).unwrap_or_default();
    let tcp = tcp.into_iter().map(|it| (Protocol::Tcp, it));
    let udp = udp.into_iter().filter(|it| it.1 < ephemeral).map(|it| (Protocol::Udp, it));
    tcp.chain(udp).filter(|(_, it)| is_here(it.0)).map(|(protocol, it)| (protocol, it.1)).collect()
}

/// The TCP ports at which the network namespace of a process answers others: what listens on the loopback answers only itself.
/// `None` where the kernel does not tell, because the process has ended, and where there are more than anybody needs.
pub fn listening_in(proc: &Path) -> Option<BTreeSet<u16>> {
    let found = diagnostics::listeners_of(proc).ok().or_else(|| tables(proc, Protocol::Tcp, TABLE_BYTES_MAX))?;
    let all: BTreeSet<u16> = found.into_iter().filter(|it| !it.0.is_loopback()).map(|it| it.1).collect();
    (all.len() <= LISTENING_MAX).then_some(all)
}

/// Address and port of each, from the tables of all sockets: for kernels without `inet_diag`, who may not ask it, and more sockets
/// than it is asked for.
fn tables(proc: &Path, protocol: Protocol, bytes_max: u64) -> Option<Vec<(IpAddr, u16)>> {
    let mut all = Vec::new();
    for (table, _, state) in TABLES.iter().filter(|it| it.1 == protocol) {
        match beginning(&proc.join("net").join(table), bytes_max) {
            Ok(text) => all.extend(local_ends(&text, state)),
            // A kernel without IPv6 has no such table.
            Err(_) if table.ends_with('6') => {}
            Err(_) => return None,
        }
    }
    Some(all)
}

/// Connections come after what listens, so that the beginning says it all.
fn beginning(table: &Path, bytes_max: u64) -> io::Result<String> {
    let mut text = Vec::new();
    File::open(table)?.take(bytes_max).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn local_ends<'a>(table: &'a str, state: &'a str) -> impl Iterator<Item = (IpAddr, u16)> + 'a {
    table.lines().skip(1).filter_map(move |line| {
        let mut words = line.split_whitespace().skip(1);
        let (local, _, is) = (words.next()?, words.next()?, words.next()?);
        let (address, port) = local.split_once(':')?;
        let port = u16::from_str_radix(port, 16).ok().filter(|_| is == state)?;
        Some((address_of(address)?, port))
    })
}

/// The kernel shows each four bytes as a number of the machine's own order.
fn address_of(text: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let word = u32::from_str_radix(text.get(at * 8..at * 8 + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    if text.len() == 8 {
        return Some(IpAddr::from(word(0)?));
    }
    let mut bytes = [0; 16];
    for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
        part.copy_from_slice(&word(at)?);
    }
    Some(IpAddr::from(bytes).to_canonical())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::*;

    #[test]
    fn sees_what_answers_at_the_nodes_addresses() {
        let node: IpAddr = [127, 0, 0, 9].into();
        let everywhere = TcpListener::bind("0.0.0.0:0").expect("a port");
        let here = TcpListener::bind((node, 0)).expect("a port");
        let elsewhere = TcpListener::bind("127.0.0.8:0").expect("a port");
        let port = |it: &TcpListener| (Protocol::Tcp, it.local_addr().expect("bound").port());
        let found = listening(&[node]);
        assert!(found.contains(&port(&everywhere)) && found.contains(&port(&here)), "{found:?}");
        assert!(!found.contains(&port(&elsewhere)), "{found:?}");
        if let Ok(everywhere6) = TcpListener::bind("[::]:0") {
            assert!(listening(&[]).contains(&port(&everywhere6)));
        }
        // By chance: it may be a client's.
        let udp = UdpSocket::bind("0.0.0.0:0").expect("a port");
        assert!(!found.contains(&(Protocol::Udp, udp.local_addr().expect("bound").port())));
        drop((everywhere, here, elsewhere));
    }

    #[test]
    fn what_listens_on_the_loopback_answers_no_other() {
        let everywhere = TcpListener::bind("0.0.0.0:0").expect("a port");
        let inside = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = |it: &TcpListener| it.local_addr().expect("bound").port();
        let found = listening_in(Path::new("/proc/self")).expect("this process lives");
        assert!(found.contains(&port(&everywhere)) && !found.contains(&port(&inside)), "{found:?}");
        assert_eq!(listening_in(Path::new("/proc/0")), None);
        let many: Vec<TcpListener> = (0..=LISTENING_MAX).filter_map(|_| TcpListener::bind("0.0.0.0:0").ok()).collect();
        assert_eq!(listening_in(Path::new("/proc/self")), None, "{} ports", many.len());
    }

    /// The tables are the oracle. Other tests open and close sockets meanwhile: only what was there before and after counts.
    #[test]
    fn the_kernel_tells_the_same_both_ways() {
        let (path, mine) = (Path::new("/proc/self"), TcpListener::bind("127.0.0.1:0").expect("a port"));
        let mine = mine.local_addr().map(|it| (it.ip(), it.port())).expect("bound");
        let set = |it: Vec<(IpAddr, u16)>| it.into_iter().collect::<BTreeSet<_>>();
        let before = set(tables(path, Protocol::Tcp, TABLE_BYTES_MAX).expect("this process lives"));
        let Ok(told) = diagnostics::listeners() else {
            eprintln!("skipped: who is not root may not ask inet_diag");
            return;
        };
        let inside = set(diagnostics::listeners_of(path).expect("root enters any namespace"));
        let after = set(tables(path, Protocol::Tcp, TABLE_BYTES_MAX).expect("this process lives"));
        let (told, stayed): (_, BTreeSet<_>) = (set(told), before.intersection(&after).copied().collect());
        assert!(stayed.is_subset(&told) && stayed.is_subset(&inside), "{stayed:?} {told:?} {inside:?}");
        assert!(before.contains(&mine) && told.contains(&mine), "{mine:?} {told:?}");
    }

    #[test]
    fn what_is_read_of_many_sockets_has_an_end() {
        let two = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
        match diagnostics::at_most(usize::MAX) {
            Ok(all) => assert!(all.len() >= two.len() && diagnostics::at_most(1).is_err(), "{all:?}"),
            Err(_) => eprintln!("skipped: who is not root may not ask inet_diag"),
        }
    }

    #[test]
    fn reads_the_kernels_table() {
        let table = "  sl  local_address rem_address   st\n\
             0: 00000000:0016 00000000:0000 0A 0\n\
             1: 0100007F:0050 00000000:0000 0A 0\n\
             2: 020010AC:01BB 00000000:0000 0A 0\n\
             3: 020010AC:C000 08080808:01BB 01 0\n\
             4: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 0\n\
             5: 000000000000000000000000:1F91 x 0A\nnonsense\n";
        let ends: Vec<_> = local_ends(table, "0A").map(|(address, port)| format!("{address} {port}")).collect();
        assert_eq!(ends, ["0.0.0.0 22", "127.0.0.1 80", "172.16.0.2 443", ":: 8080"]);
    }
}
