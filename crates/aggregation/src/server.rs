//! What all requests to one server may have of it together, whatever groups and versions it serves.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use corten_access::identity::party;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    kept::KeptConnections,
    share::{Share, Shares},
    spec::Spec,
};

/// To one server at once: its watches are connections of their own, and may not take all that this process can have.
pub(crate) const CONNECTIONS_MAX: usize = 1_000;
/// Of these one user has no more.
pub(crate) const CONNECTIONS_OF_USER_MAX: usize = CONNECTIONS_MAX / 2;

pub(crate) struct Bounds {
    connections: Arc<Semaphore>,
    shares: Shares,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { connections: Arc::new(Semaphore::new(CONNECTIONS_MAX)), shares: Shares::default() }
    }
}

/// One connection's place among those to its server. What still runs counts, though nobody names the server any more.
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
    _of: Arc<Bounds>,
}

/// A Service's port, as APIServices name it.
#[derive(Clone, Default)]
pub(crate) struct Server {
    bounds: Arc<Bounds>,
    pub(crate) kept: Arc<KeptConnections>,
}

impl Server {
    /// `None` where the user, or the service accounts of their namespace together, have as many requests under way there as may be.
    pub(crate) fn share(&self, user: &str) -> Option<Share> {
        self.bounds.shares.take(party(user), CONNECTIONS_OF_USER_MAX)
    }

    /// `None` where there are as many connections as may be.
    pub(crate) fn place(&self) -> Option<Place> {
        let permit = Arc::clone(&self.bounds.connections).try_acquire_owned().ok()?;
        Some(Place { _permit: permit, _of: self.bounds.clone() })
    }
}

/// Those that somebody has, or has connections to.
#[derive(Default)]
pub(crate) struct Servers(Mutex<BTreeMap<Name, Known>>);

/// Namespace, name and port of a Service.
type Name = (String, String, u16);

type Known = (Weak<Bounds>, Weak<KeptConnections>);

impl Servers {
    /// The same for all APIServices that lead there, and for one that has changed.
    pub(crate) fn of(&self, spec: &Spec) -> Server {
        let mut known = self.0.lock();
        known.retain(|_, it| it.0.strong_count() > 0);
        let name = (spec.namespace.clone(), spec.service.clone(), spec.port);
        let (bounds, kept) = known.get(&name).map(|it| (it.0.upgrade(), it.1.upgrade())).unwrap_or_default();
        let server = Server { bounds: bounds.unwrap_or_default(), kept: kept.unwrap_or_default() };
        known.insert(name, (Arc::downgrade(&server.bounds), Arc::downgrade(&server.kept)));
        server
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(name: &str, service: &str, port: u16) -> Spec {
        let (version, group) = name.split_once('.').expect("a name");
        let service = json!({ "namespace": "other", "name": service, "port": port });
        let spec = json!({ "group": group, "version": version, "service": service, "insecureSkipTLSVerify": true });
        Spec::of(&json!({ "metadata": { "name": name }, "spec": spec })).expect("another server's")
    }

    #[test]
    fn all_that_leads_to_one_service_and_port_shares_its_bounds() {
        let servers = Servers::default();
        let first = servers.of(&spec("v1.a.example.com", "flunder", 443));
        let places: Vec<Place> = (0..CONNECTIONS_MAX).map_while(|_| first.place()).collect();
        let shares: Vec<Share> = (0..CONNECTIONS_OF_USER_MAX).map_while(|_| first.share("jane")).collect();
        assert_eq!((places.len(), shares.len()), (CONNECTIONS_MAX, CONNECTIONS_OF_USER_MAX));
        for (name, service, port, is_same) in [
            ("v2.a.example.com", "flunder", 443, true),
            ("v1.b.example.com", "flunder", 443, true),
            ("v1.a.example.com", "flunder", 8443, false),
            ("v1.a.example.com", "other", 443, false),
        ] {
            let server = servers.of(&spec(name, service, port));
            let is_full = (server.place().is_none(), server.share("jane").is_none());
            assert_eq!(is_full, (is_same, is_same), "{name} {service} {port}");
            assert_eq!(Arc::ptr_eq(&server.kept, &first.kept), is_same, "{name} {service} {port}");
            assert!(server.share("joe").is_some());
        }
    }

    #[test]
    fn what_still_runs_counts_after_its_api_service_has_gone() {
        let servers = Servers::default();
        let spec = spec("v1.a.example.com", "flunder", 443);
        let first = servers.of(&spec);
        let places: Vec<Place> = (0..CONNECTIONS_MAX).map_while(|_| first.place()).collect();
        drop(first);
        let again = servers.of(&spec);
        assert!(again.place().is_none());
        drop(places);
        assert!(again.place().is_some());
        drop(again);
        servers.of(&self::spec("v1.b.example.com", "other", 443));
        assert_eq!(servers.0.lock().len(), 1, "nobody has anything of the first");
    }
}
