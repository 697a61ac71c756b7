//! How many connections each address has: none may have them all.

use std::{collections::HashMap, net::IpAddr, sync::Arc};

use parking_lot::Mutex;

/// Counts the connections of a listener by where they are from.
#[derive(Clone)]
pub struct Addresses {
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
    max: usize,
}

/// One connection, until this is dropped.
pub struct Connected {
    of: Addresses,
    address: IpAddr,
}

impl Addresses {
    /// Each address may have up to `max`.
    pub fn new(max: usize) -> Self {
        Self { open: Arc::default(), max }
    }

    /// `None` where the address has as many as it may.
    pub fn admit(&self, address: IpAddr) -> Option<Connected> {
        // The same machine, however the listener sees it.
        let address = address.to_canonical();
        let mut open = self.open.lock();
        let n = open.entry(address).or_default();
        if *n >= self.max {
            return None;
        }
        *n += 1;
        Some(Connected { of: self.clone(), address })
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        let mut open = self.of.open.lock();
        if let Some(n) = open.get_mut(&self.address) {
            *n -= 1;
            if *n == 0 {
                open.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_share_and_no_more() {
        let addresses = Addresses::new(2);
        let at = |text: &str| text.parse().expect("an address");
        let mut held = [addresses.admit(at("10.0.0.1")), addresses.admit(at("::ffff:10.0.0.1"))];
        assert!(held.iter().all(Option::is_some) && addresses.admit(at("10.0.0.1")).is_none());
        assert!(addresses.admit(at("10.0.0.2")).is_some());
        held[0] = None;
        assert!(addresses.admit(at("10.0.0.1")).is_some());
        drop(held);
        assert!(addresses.open.lock().is_empty());
    }
}
