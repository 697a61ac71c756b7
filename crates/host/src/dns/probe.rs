//! Does a name server answer at all?

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use corten_dns::{Name, Question};

use super::exchange::exchange;

/// A resolver's own time-out (`RES_TIMEOUT`) is 5 s; the server is asked twice within it.
const PATIENCE: Duration = Duration::from_secs(2);
const TRIES: usize = 2;
/// `NS`, which every server can answer for the root, or refuse.
const NS: u16 = 2;

/// An answer with an error is one, too.
pub(crate) async fn answers(server: IpAddr) -> bool {
    let question = Question { name: Name::ROOT, qtype: NS, dnssec_ok: false, checking_disabled: false };
    for _ in 0..TRIES {
        match exchange(SocketAddr::new(server, 53), &question, PATIENCE).await {
            Ok(_) => return true,
            // Something answers that cannot be read: that is for others to judge.
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => return true,
            Err(_) => {}
        }
    }
    false
}
