//! Names: how many queries a second the node answers, and what a core is good for.

use std::{
    net::{SocketAddr, UdpSocket},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use corten_testbed::{Connection, RealNode, cpu_of};
use serde_json::Value;

use super::{
    super::report::{Row, Unit},
    Scale,
};

const SERVICE: &str = "/api/v1/namespaces/kube-system/services/kube-dns";
/// Made by the cluster itself.
const NAME: &str = "kubernetes.default.svc.cluster.local";
const SENDERS: usize = 2;
/// Queries of one sender that wait for their answer.
const UNDER_WAY: usize = 32;
const PATIENCE: Duration = Duration::from_secs(30);
const LOST: Duration = Duration::from_secs(2);

pub(super) async fn measure(node: &RealNode, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let server = server(&mut node.connect().await?).await?;
    // The first finds everything cold, and the rules may come a moment after the Service.
    let end = Instant::now() + PATIENCE;
    while let Err(error) = flood(server, 1) {
        if Instant::now() > end {
            return Err(error).context("no name server answers");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (begin, cpu) = (Instant::now(), cpu_of(node.pid())?);
    let each = scale.queries / SENDERS;
    let senders: Vec<_> = (0..SENDERS).map(|_| std::thread::spawn(move || flood(server, each))).collect();
    for sender in senders {
        sender.join().map_err(|_| anyhow::anyhow!("a sender broke"))??;
    }
    let (took, used) = (begin.elapsed(), cpu_of(node.pid())? - cpu);
    let n = (each * SENDERS) as f64;
    let note = format!(
        "{:.1} µs of Corten's processor time each; {:.0} /s as they came, the senders on the same cores",
        used.as_secs_f64() * 1e6 / n,
        n / took.as_secs_f64()
    );
    rows.push(
        Row::new("DNS queries answered by one core", n / used.as_secs_f64().max(1e-9), Unit::PerSecond).note(note),
    );
    Ok(())
}

async fn server(connection: &mut Connection) -> Result<SocketAddr> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Ok(service) = connection.get(SERVICE).await {
            let service: Value = serde_json::from_slice(&service)?;
            if let Some(ip) = service["spec"]["clusterIP"].as_str() {
                return Ok(SocketAddr::new(ip.parse()?, 53));
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bail!("there is no Service kube-dns")
}

/// Asks `n` times, so many at once, and takes the answers.
fn flood(server: SocketAddr, n: usize) -> Result<()> {
    let socket = UdpSocket::bind(("0.0.0.0", 0))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(LOST))?;
    let mut query = query(NAME);
    let (mut n_sent, mut n_answered) = (0_usize, 0_usize);
    let mut answer = [0_u8; 1500];
    while n_answered < n {
        while n_sent < n && n_sent - n_answered < UNDER_WAY {
            query[..2].copy_from_slice(&u16::try_from(n_sent & 0xffff).unwrap_or_default().to_be_bytes());
            socket.send(&query)?;
            n_sent += 1;
        }
        let length = socket.recv(&mut answer).context("an answer was lost")?;
        // No error, and at least one address.
        if length < 12 || answer[3] & 0xf != 0 || answer[6..8] == [0, 0] {
            bail!("a query was answered with {:?}", &answer[..length.min(12)]);
        }
        n_answered += 1;
    }
    Ok(())
}

/// For an address (A, IN), recursion desired.
fn query(name: &str) -> Vec<u8> {
    let mut query = vec![0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        query.push(u8::try_from(label.len()).expect("a label is short"));
        query.extend_from_slice(label.as_bytes());
    }
    query.extend_from_slice(&[0, 0, 1, 0, 1]);
    query
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_query_is_as_the_protocol_wants_it() {
        assert_eq!(super::query("a.bc")[12..], [1, b'a', 2, b'b', b'c', 0, 0, 1, 0, 1]);
    }
}
