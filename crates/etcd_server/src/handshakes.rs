//! Clients that have not yet shown who they are. There are so many at a time: then the address that has most of them loses its oldest to
//! the next one. kube-apiserver begins some hundred connections at once, one for each resource.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr},
};

use tokio::task::{AbortHandle, JoinSet};

const HANDSHAKES_MAX: usize = 1_024;

pub(crate) struct Handshakes<T> {
    running: JoinSet<(u64, Option<T>)>,
    /// In the order in which they began.
    begun: BTreeMap<u64, (IpAddr, AbortHandle)>,
    next: u64,
}

impl<T: Send + 'static> Handshakes<T> {
    pub(crate) fn new() -> Self {
        Self { running: JoinSet::new(), begun: BTreeMap::new(), next: 0 }
    }

    pub(crate) fn begin(&mut self, from: IpAddr, handshake: impl Future<Output = Option<T>> + Send + 'static) {
        if self.begun.len() >= HANDSHAKES_MAX {
            self.drop_one();
        }
        let number = self.next;
        self.next += 1;
        let handle = self.running.spawn(async move { (number, handshake.await) });
        self.begun.insert(number, (network(from), handle));
    }

    fn drop_one(&mut self) {
        let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for (from, _) in self.begun.values() {
            *counts.entry(*from).or_default() += 1;
        }
        let most = counts.values().copied().max();
        let oldest = self.begun.iter().find(|(_, (from, _))| counts.get(from).copied() == most).map(|it| *it.0);
        if let Some((from, handle)) = oldest.and_then(|it| self.begun.remove(&it)) {
            tracing::debug!(%from, "too many clients of etcd's API begin at once: the oldest of the address with most of them has to leave");
            handle.abort();
        }
    }

    /// The next that has ended well; waits for ever where none is under way.
    pub(crate) async fn next(&mut self) -> T {
        loop {
            match self.running.join_next().await {
                Some(Ok((number, ended))) => {
                    self.begun.remove(&number);
                    if let Some(ended) = ended {
                        return ended;
                    }
                }
                // It was dropped.
                Some(Err(_)) => {}
                None => return std::future::pending().await,
            }
        }
    }
}

/// Whoever has one address of IPv6 has all of its /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(it) => IpAddr::V6(Ipv6Addr::from_bits(it.to_bits() >> 64 << 64)),
        it @ IpAddr::V4(_) => it,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    type Ends = Vec<oneshot::Sender<u32>>;

    /// Handshakes that end when their sender says so.
    fn begin(handshakes: &mut Handshakes<u32>, from: IpAddr, n: usize) -> Ends {
        let one = |_| {
            let (end, ended) = oneshot::channel();
            handshakes.begin(from, async move { ended.await.ok() });
            end
        };
        (0..n).map(one).collect()
    }

    fn v4(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    /// Which still run.
    async fn left(ends: &Ends) -> Vec<usize> {
        // Those that were dropped are taken off by the runtime first.
        for _ in 0..64 {
            tokio::task::yield_now().await;
        }
        (0..ends.len()).filter(|it| !ends[*it].is_closed()).collect()
    }

    #[tokio::test]
    async fn who_begins_most_loses_its_oldest() {
        let mut handshakes = Handshakes::new();
        let mut first = begin(&mut handshakes, v4(1), 100);
        let many = begin(&mut handshakes, v4(2), HANDSHAKES_MAX);
        assert_eq!(left(&many).await, (100..HANDSHAKES_MAX).collect::<Vec<_>>());
        assert_eq!(left(&first).await.len(), 100);
        first.remove(0).send(7).expect("it runs");
        assert_eq!(handshakes.next().await, 7);
        assert!(handshakes.next().now_or_never().is_none(), "nobody else has ended");
        // One that has ended makes room.
        let last = begin(&mut handshakes, v4(3), 1);
        assert_eq!((left(&last).await.len(), left(&many).await.len()), (1, HANDSHAKES_MAX - 100));
    }

    #[tokio::test]
    async fn where_each_address_has_as_many_the_oldest_of_all_leaves() {
        let mut handshakes = Handshakes::new();
        let address = |it: usize| IpAddr::from(u32::try_from(it).expect("it is small").to_be_bytes());
        let all: Vec<Ends> = (0..HANDSHAKES_MAX).map(|it| begin(&mut handshakes, address(it), 1)).collect();
        let next = begin(&mut handshakes, v4(1), 1);
        assert!(left(&all[0]).await.is_empty());
        assert_eq!((left(&all[1]).await.len(), left(&next).await.len()), (1, 1));
    }

    #[test]
    fn addresses_of_one_machine_are_one() {
        let address = |it: &str| it.parse::<IpAddr>().expect("an address");
        assert_eq!(network(address("fd00::1:2:3:4")), network(address("fd00::9")));
        assert_ne!(network(address("fd00:0:0:1::9")), network(address("fd00::9")));
        assert_eq!(network(address("::ffff:10.0.0.1")), v4(1));
    }
}
