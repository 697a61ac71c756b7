//! Work that a client began and that goes on to its end when the client leaves: a write is not half done by a hang-up.

use std::{panic, sync::Arc};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::watch,
    task::{AbortHandle, JoinSet},
};

/// What goes on without its clients. Clones are the same.
#[derive(Clone, Default)]
pub struct Unattended(Arc<Mutex<JoinSet<()>>>);

/// Whether somebody still waits for the work. It goes along with a request, and ends what nothing else would end.
#[derive(Clone)]
pub struct Attendance(watch::Receiver<()>);

impl Attendance {
    /// Comes when nobody waits any more.
    pub async fn ends(mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

impl Unattended {
    /// Waits for the work, which is a task of its own on this runtime: where the wait is dropped, the work goes on. What may take for ever looks
    /// at its [`Attendance`].
    pub async fn finish<T, W>(&self, on: &Handle, work: impl FnOnce(Attendance) -> W) -> T
    where
        T: Send + 'static,
        W: Future<Output = T> + Send + 'static,
    {
        let (attended, attendance) = watch::channel(());
        let mut waiting = AttendedWork { work: JoinSet::new(), _attended: attended, unattended: self };
        let _: AbortHandle = waiting.work.spawn_on(work(Attendance(attendance)), on);
        joined(&mut waiting.work).await
    }

    /// Ends what still goes on.
    pub async fn end(&self) {
        let mut left = std::mem::take(&mut *self.0.lock());
        left.shutdown().await;
    }

    fn keep<T: Send + 'static>(&self, mut work: JoinSet<T>) {
        // Without a runtime nothing goes on.
        let Ok(runtime) = Handle::try_current() else { return };
        let mut left = self.0.lock();
        while left.try_join_next().is_some() {}
        left.spawn_on(async move { while work.join_next().await.is_some() {} }, &runtime);
    }
}

/// What comes of the one task there is.
pub(crate) async fn joined<T: 'static>(task: &mut JoinSet<T>) -> T {
    match task.join_next().await.expect("one was spawned") {
        Ok(done) => done,
        Err(broken) => match broken.try_into_panic() {
            Ok(panic) => panic::resume_unwind(panic),
            // The runtime ends, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}

struct AttendedWork<'a, T: Send + 'static> {
    work: JoinSet<T>,
    _attended: watch::Sender<()>,
    unattended: &'a Unattended,
}

impl<T: Send + 'static> Drop for AttendedWork<'_, T> {
    fn drop(&mut self) {
        if !self.work.is_empty() {
            self.unattended.keep(std::mem::take(&mut self.work));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn work_goes_on_when_nobody_waits_and_knows_it() {
        let (unattended, here) = (Unattended::default(), Handle::current());
        let (begun, has_begun) = oneshot::channel();
        let (done, is_done) = oneshot::channel();
        let waiting = unattended.finish(&here, |attendance| async move {
            begun.send(()).expect("the test waits");
            attendance.ends().await;
            done.send(()).expect("the test waits");
        });
        tokio::select! {
            () = waiting => panic!("it ends when it is left"),
            it = has_begun => it.expect("it begins"),
        }
        is_done.await.expect("it went on to its end");
        assert_eq!(unattended.finish(&here, |_| async { 7 }).await, 7);
    }

    #[tokio::test]
    async fn what_goes_on_is_ended_with_the_server() {
        let (unattended, here) = (Unattended::default(), Handle::current());
        let (kept, is_dropped) = oneshot::channel::<()>();
        let (begun, has_begun) = oneshot::channel();
        let waiting = unattended.finish(&here, |_| async move {
            begun.send(()).expect("the test waits");
            let _kept = kept;
            std::future::pending::<()>().await;
        });
        tokio::select! {
            () = waiting => panic!("it has no end"),
            it = has_begun => it.expect("it begins"),
        }
        unattended.end().await;
        is_dropped.await.expect_err("the work was dropped");
    }
}
