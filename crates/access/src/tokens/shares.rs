//! How much of the webhook one address may take: whoever sends token after token that nobody knows waits for their own
//! questions, and others for theirs.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// So many questions of one address are under way at once.
const AT_ONCE: usize = 16;
/// So many more may wait; the next is refused.
const WAITING_MAX: usize = 128;

#[derive(Default)]
pub(super) struct Shares(Mutex<HashMap<IpAddr, Weak<Share>>>);

struct Share {
    turns: Arc<Semaphore>,
    room: Arc<Semaphore>,
}

/// As long as it is held a question is under way.
pub(super) struct ReviewPermit {
    /// Its share is counted as long as somebody asks.
    _share: Arc<Share>,
    _places: [OwnedSemaphorePermit; 2],
}

impl Shares {
    /// Waits for a turn; `None` where too many wait already.
    pub(super) async fn turn(&self, from: IpAddr) -> Option<ReviewPermit> {
        let share = self.of(network(from));
        let room = share.room.clone().try_acquire_owned().ok()?;
        let turn = share.turns.clone().acquire_owned().await.ok()?;
        Some(ReviewPermit { _share: share, _places: [room, turn] })
    }

    fn of(&self, network: IpAddr) -> Arc<Share> {
        let mut shares = self.0.lock();
        if let Some(share) = shares.get(&network).and_then(Weak::upgrade) {
            return share;
        }
        // As many stay as have a question under way: connections are bounded.
        shares.retain(|_, it| it.strong_count() > 0);
        let semaphore = |n| Arc::new(Semaphore::new(n));
        let share = Arc::new(Share { turns: semaphore(AT_ONCE), room: semaphore(AT_ONCE + WAITING_MAX) });
        shares.insert(network, Arc::downgrade(&share));
        share
    }
}

/// Who has one address of a `/64` has all of them.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(it) => IpAddr::V6(Ipv6Addr::from_bits(it.to_bits() & !u128::from(u64::MAX))),
        it @ IpAddr::V4(_) => it,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn at(address: &str) -> IpAddr {
        address.parse().expect("an address")
    }

    #[test]
    fn one_address_waits_for_itself_alone_and_not_without_end() {
        let shares = Shares::default();
        let mut turns: Vec<_> = (0..AT_ONCE).map(|_| shares.turn(at("10.0.0.1")).now_or_never()).collect();
        assert!(turns.iter().all(Option::is_some));
        let mut waiting: Vec<_> = (0..WAITING_MAX).map(|_| Box::pin(shares.turn(at("10.0.0.1")))).collect();
        assert!(waiting.iter_mut().all(|it| it.now_or_never().is_none()));
        assert!(matches!(shares.turn(at("10.0.0.1")).now_or_never(), Some(None)), "no more may wait");
        assert!(matches!(shares.turn(at("10.0.0.2")).now_or_never(), Some(Some(_))), "others do not wait");
        turns.pop();
        assert!(matches!(waiting[0].as_mut().now_or_never(), Some(Some(_))));
        drop((turns, waiting));
        assert!(matches!(shares.turn(at("10.0.0.3")).now_or_never(), Some(Some(_))));
        assert_eq!(shares.0.lock().len(), 1, "who asks nothing costs nothing");
    }

    #[test]
    fn a_network_of_version_6_is_one_address() {
        assert_eq!(network(at("2001:db8::1")), network(at("2001:db8::ffff:2")));
        assert_ne!(network(at("2001:db8::1")), network(at("2001:db8:0:1::1")));
        assert_eq!(network(at("::ffff:10.0.0.1")), at("10.0.0.1"));
    }
}
