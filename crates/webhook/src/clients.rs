//! All that is asked, each with its kept connections for as long as somebody holds it.

use std::sync::{Arc, Weak};

use corten_cacher::watch_cache::Caches;
use rustix::net::sockopt::set_tcp_user_timeout;
use tokio::net::TcpStream;

use crate::{
    client::{Client, ClientsByConfig, Entry},
    client_config::{ClientConfig, ConfigError},
    connection::Dial,
};

/// A connection ends where what is sent over it is not heard of for so long: its far end is gone without a word.
const UNHEARD_MS_MAX: u32 = 10_000;

pub struct Clients {
    caches: Arc<Caches>,
    dial: Dial,
    known: Arc<ClientsByConfig>,
}

impl Clients {
    /// Over the machine's network.
    pub fn new(caches: Arc<Caches>) -> Self {
        let dial: Dial = Arc::new(|address| {
            Box::pin(async move {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                set_tcp_user_timeout(&stream, UNHEARD_MS_MAX)?;
                Ok(stream)
            })
        });
        Self::dialling(caches, dial)
    }

    /// Over another network.
    pub fn dialling(caches: Arc<Caches>, dial: Dial) -> Self {
        Self { caches, dial, known: Arc::default() }
    }

    /// The client of a configuration: the same for all who hold it. Its connections end when the last of them drops it, as those who
    /// compile configurations do with one that has changed.
    ///
    /// # Errors
    /// The configuration cannot be used.
    pub fn client(&self, config: &ClientConfig) -> Result<Arc<Client>, ConfigError> {
        if let Some(client) = self.known.lock().get(config).and_then(Weak::upgrade) {
            return Ok(client);
        }
        let entry = Entry { known: self.known.clone(), config: config.clone() };
        let made = Arc::new(Client::new(config, self.caches.clone(), self.dial.clone(), entry)?);
        let mut known = self.known.lock();
        if let Some(client) = known.get(config).and_then(Weak::upgrade) {
            // Somebody else was faster. What was made in vain takes the lock when it goes.
            drop(known);
            return Ok(client);
        }
        known.insert(config.clone(), Arc::downgrade(&made));
        Ok(made)
    }

    #[cfg(test)]
    pub(crate) fn n_known(&self) -> usize {
        self.known.lock().len()
    }
}
