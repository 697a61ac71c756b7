//! Sees to it that each Pod sends from its own addresses only, from before its first container starts.
//!
//! Where the kernel lacks the hook for it Pods start all the same, and it is said of the node.

use std::sync::{Arc, Mutex, PoisonError};

use corten_machine::{Layout, MachineError};

use crate::{
    cni::{self, PodLink},
    nft::{Port, SourceGuard},
};

/// The check of the source addresses of all Pods of a node. Clones are the same.
#[derive(Clone, Debug)]
pub struct PodSourceGuards {
    layout: Arc<Layout>,
    /// What a CNI plug-in of another's plugs in it also guards.
    is_on: bool,
    guard: SourceGuard,
    /// Why Pods' sources are not checked.
    problem: Arc<Mutex<Option<String>>>,
    /// Writing all anew must not forget one that is just being added.
    writing: Arc<tokio::sync::Mutex<()>>,
}

impl PodSourceGuards {
    pub fn new(layout: &Layout, link: &PodLink) -> Self {
        Self {
            layout: Arc::new(layout.clone()),
            is_on: !link.is_plugin(),
            guard: SourceGuard::new(layout),
            problem: Arc::default(),
            writing: Arc::default(),
        }
    }

    /// Has all sandboxes watched that are plugged in.
    pub async fn watch_all(&self) {
        if !self.is_on {
            return;
        }
        let _writing = self.writing.lock().await;
        self.put_all().await;
    }

    /// One sandbox more. Whoever asks has it ended where this fails.
    ///
    /// # Errors
    /// The kernel, which takes the checks of others, does not take this one's.
    pub async fn watch(&self, sandbox: &str) -> Result<(), MachineError> {
        if !self.is_on {
            return Ok(());
        }
        let _writing = self.writing.lock().await;
        if self.problem().is_some() {
            self.put_all().await;
            return Ok(());
        }
        match self.guard.add(cni::port(&self.layout, sandbox)?).await {
            Err(MachineError::Io { cause, .. }) if cause.kind() == std::io::ErrorKind::NotFound => {
                tracing::warn!("the checks of pods' sources are gone; they are made anew");
                self.put_all().await;
                Ok(())
            }
            other => other,
        }
    }

    /// Where a sandbox is plugged in: to be asked before it is unplugged.
    pub fn port(&self, sandbox: &str) -> Option<Port> {
        self.is_on.then(|| cni::port(&self.layout, sandbox).ok()).flatten()
    }

    /// A sandbox is unplugged.
    pub async fn forget(&self, port: &Port) {
        if self.problem().is_none()
            && let Err(error) = self.guard.forget(&port.interface).await
        {
            tracing::debug!(%error, interface = port.interface, "the checks of a pod that is gone stay");
        }
    }

    /// Why Pods' sources are not checked; nothing where they are. What somebody took away is made anew.
    pub async fn look(&self) -> Option<String> {
        if !self.is_on {
            return None;
        }
        let _writing = self.writing.lock().await;
        if self.problem().is_some() || !matches!(self.guard.is_there().await, Ok(true)) {
            self.put_all().await;
        }
        self.problem()
    }

    async fn put_all(&self) {
        let problem = self.guard.put(cni::ports(&self.layout)).await.err().map(|it| it.to_string());
        let before =
            std::mem::replace(&mut *self.problem.lock().unwrap_or_else(PoisonError::into_inner), problem.clone());
        if let Some(problem) = problem.filter(|it| before.as_ref() != Some(it)) {
            tracing::warn!(problem, "pods can send from addresses that are not theirs");
        }
    }

    fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
