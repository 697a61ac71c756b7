//! Work that a client began and that goes on to its end when the client leaves: a write is not half done by a hang-up.

use std::{
    panic,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

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

    /// Waits for the work as [`Self::finish`] does. It is done by the task that waits, which no other thread is woken for, and becomes
    /// one of its own where the wait is dropped.
    pub async fn finish_here<W>(&self, work: impl FnOnce(Attendance) -> W) -> W::Output
    where
        W: Future + Send + 'static,
        W::Output: Send + 'static,
    {
        let (attended, attendance) = watch::channel(());
        let work = Some(Box::pin(work(Attendance(attendance))));
        WorkHere { work, is_moving: false, _attended: attended, unattended: self }.await
    }

    /// Ends what still goes on.
    pub async fn end(&self) {
        let mut left = std::mem::take(&mut *self.0.lock());
        left.shutdown().await;
    }

    fn keep(&self, work: impl Future<Output = ()> + Send + 'static) {
        // Without a runtime nothing goes on.
        let Ok(runtime) = Handle::try_current() else { return };
        let mut left = self.0.lock();
        while left.try_join_next().is_some() {}
        left.spawn_on(work, &runtime);
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
            let mut work = std::mem::take(&mut self.work);
            self.unattended.keep(async move { while work.join_next().await.is_some() {} });
        }
    }
}

struct WorkHere<'a, W>
where
    W: Future + Send + 'static,
    W::Output: Send + 'static,
{
    /// Until it is done.
    work: Option<Pin<Box<W>>>,
    /// What is dropped while this is true has panicked.
    is_moving: bool,
    _attended: watch::Sender<()>,
    unattended: &'a Unattended,
}

impl<W> Future for WorkHere<'_, W>
where
    W: Future + Send + 'static,
    W::Output: Send + 'static,
{
    type Output = W::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<W::Output> {
        let this = &mut *self;
        this.is_moving = true;
        let moved = this.work.as_mut().expect("it is polled until it is done").as_mut().poll(context);
        this.is_moving = false;
        if moved.is_ready() {
            this.work = None;
        }
        moved
    }
}

impl<W> Drop for WorkHere<'_, W>
where
    W: Future + Send + 'static,
    W::Output: Send + 'static,
{
    fn drop(&mut self) {
        if let Some(work) = self.work.take().filter(|_| !self.is_moving) {
            self.unattended.keep(async move { drop(work.await) });
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
    async fn work_that_is_done_by_who_waits_goes_on_in_a_task_of_its_own() {
        let unattended = Unattended::default();
        let (begun, has_begun) = oneshot::channel();
        let (done, is_done) = oneshot::channel();
        let left = unattended.clone();
        let waiter = tokio::spawn(async move {
            left.finish_here(|attendance| async move {
                begun.send(tokio::task::id()).expect("the test waits");
                attendance.ends().await;
                done.send(tokio::task::id()).expect("the test waits");
            })
            .await;
        });
        assert_eq!(has_begun.await.expect("it begins"), waiter.id());
        waiter.abort();
        let (began_in, went_on_in) = (waiter.id(), is_done.await.expect("it went on to its end"));
        assert!(waiter.await.expect_err("it was left").is_cancelled());
        assert_ne!(began_in, went_on_in);
        assert_eq!(unattended.finish_here(|_| async { 7 }).await, 7);
    }

    #[tokio::test]
    async fn work_that_panics_here_does_not_go_on() {
        let unattended = Unattended::default();
        let left = unattended.clone();
        let broken = tokio::spawn(async move { left.finish_here(|_| async { panic!("it breaks") }).await });
        assert!(broken.await.expect_err("it broke").is_panic());
        assert!(unattended.0.lock().is_empty());
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
