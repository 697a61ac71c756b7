//! Connections that wait for the next request: which of them are kept, for how long, and who may take one. One rule for all servers
//! that others run.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::{
    runtime::{self, Handle},
    time::Instant,
};

use crate::stream::Socket;

/// A connection to somebody else's server that is idle for longer is not used again: what stands between may have forgotten it.
pub const IDLE_MAX: Duration = Duration::from_secs(30);
/// To one server.
pub const IDLE_CONNECTIONS_MAX: usize = 16;

/// A connection that takes one request after another.
pub trait Reusable {
    fn reuse(&mut self) -> &mut Reuse;

    /// As far as is heard of whoever might have closed it.
    fn is_open(&mut self) -> bool;

    /// An answer may have come before the request was sent to its end: such a connection is still busy with that.
    fn is_ready(&self) -> bool;
}

/// What decides whether, and by whom, a connection is used again.
pub struct Reuse {
    /// Without it, it cannot be looked whether the connection has just been closed, and it is not kept.
    socket: Option<Socket>,
    /// The threads that its events are told to. Others would wait until these have time.
    driven_by: runtime::Id,
    idle_since: Instant,
}

impl Reuse {
    /// Of a connection that the threads that ask here drive. `socket` is what is below its stream.
    pub fn over(socket: Option<Socket>) -> Self {
        Self { socket, driven_by: Handle::current().id(), idle_since: Instant::now() }
    }

    fn is_allowed(&self) -> bool {
        self.socket.is_some() && self.idle_since.elapsed() < IDLE_MAX
    }
}

fn is_usable<C: Reusable>(connection: &mut C) -> bool {
    connection.is_open() && connection.reuse().is_allowed()
}

/// Idle connections to one server. Each is taken only by requests of the runtime that opened it.
pub struct Idle<C>(Mutex<Vec<C>>);

impl<C> Default for Idle<C> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<C: Reusable> Idle<C> {
    /// The one that was used last, of those that are wanted.
    pub fn take(&self, is_wanted: impl Fn(&C) -> bool) -> Option<C> {
        let mut idle = self.0.lock();
        idle.retain_mut(is_usable);
        let here = Handle::current().id();
        let mut may_take = |it: &mut C| it.reuse().driven_by == here && it.is_ready() && is_wanted(it);
        while let Some(at) = idle.iter_mut().rposition(&mut may_take) {
            let mut connection = idle.remove(at);
            // Whoever has just closed it is heard of by a look at the socket alone.
            if connection.reuse().socket.as_ref().is_some_and(Socket::is_silent) {
                return Some(connection);
            }
        }
        None
    }

    pub fn put(&self, mut connection: C) {
        connection.reuse().idle_since = Instant::now();
        let mut idle = self.0.lock();
        idle.retain_mut(is_usable);
        if idle.len() < IDLE_CONNECTIONS_MAX && is_usable(&mut connection) {
            idle.push(connection);
        }
    }

    /// Ends those that nobody will take, or that are not to be kept.
    pub fn tidy(&self, is_kept: impl Fn(&C) -> bool) {
        self.0.lock().retain_mut(|it| is_usable(it) && is_kept(it));
    }

    pub fn end_all(&self) {
        self.0.lock().clear();
    }

    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    struct Fake {
        name: &'static str,
        reuse: Reuse,
        is_open: bool,
        is_ready: bool,
    }

    impl Reusable for Fake {
        fn reuse(&mut self) -> &mut Reuse {
            &mut self.reuse
        }

        fn is_open(&mut self) -> bool {
            self.is_open
        }

        fn is_ready(&self) -> bool {
            self.is_ready
        }
    }

    fn socket() -> (Option<Socket>, UnixStream) {
        let (near, far) = UnixStream::pair().expect("a pair");
        (Some(Socket::of(&near).expect("a descriptor")), far)
    }

    fn fake(name: &'static str, socket: Option<Socket>) -> Fake {
        Fake { name, reuse: Reuse::over(socket), is_open: true, is_ready: true }
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_kept_and_who_is_taken() {
        let idle = Idle::default();
        let taken = |wanted: &str| idle.take(|it: &Fake| wanted.is_empty() || it.name == wanted).map(|it| it.name);
        let (of_a, _a) = socket();
        let (of_b, _b) = socket();
        idle.put(fake("a", of_a));
        idle.put(fake("b", of_b));
        idle.put(fake("without a socket", None));
        assert_eq!([taken("c"), taken("a"), taken(""), taken("")], [None, Some("a"), Some("b"), None]);
        // Closed, in one way or the other; busy; idle for long.
        let (of_closed, closed) = socket();
        idle.put(fake("closed", of_closed));
        drop(closed);
        assert_eq!(taken(""), None);
        let (of_ended, _ended) = socket();
        idle.put(Fake { is_open: false, ..fake("ended", of_ended) });
        assert!(idle.is_empty());
        let (of_busy, _busy) = socket();
        idle.put(Fake { is_ready: false, ..fake("busy", of_busy) });
        assert_eq!((taken(""), idle.len()), (None, 1));
        tokio::time::advance(IDLE_MAX).await;
        idle.tidy(|_| true);
        assert!(idle.is_empty());
    }

    #[tokio::test]
    async fn what_other_threads_drive_is_left_to_them() {
        let idle = Idle::default();
        let (socket, _far) = socket();
        idle.put(fake("a", socket));
        let elsewhere = std::thread::scope(|scope| {
            let take = || {
                let runtime = runtime::Builder::new_current_thread().build().expect("a runtime");
                runtime.block_on(async { idle.take(|_| true).is_some() })
            };
            scope.spawn(take).join().expect("it ends")
        });
        assert!(!elsewhere && idle.take(|_| true).is_some());
    }
}
