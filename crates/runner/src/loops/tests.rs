//! Minds that never come back, and loops that break: the others go on. The watchdog looks when it is told to, and what
//! stands still does so until the test lets it go.

use std::{
    collections::BTreeSet,
    sync::mpsc,
    time::{Duration, Instant},
};

use corten_api::resources::{CONFIG_MAPS, PODS};
use corten_meta::{Key, Named, ObjectMeta, Resource, Time};
use corten_reconcile::{Controller, Decision, Effect, Plan, Projection, Verb, View, Wake as Wakes, Watch, Write};
use serde::Deserialize;
use serde_json::json;

use super::{
    watchdog::{LOOKS_MAX, REASON, STUCK_MAX, Watchdog},
    *,
};
use crate::{
    ControllerLoop, SharedInformers,
    fake::{FakeApi, clock},
};

const PATIENCE: Duration = Duration::from_secs(60);
const CONFIG: &str = "/api/v1/namespaces/default/configmaps";
const POD: &str = "/api/v1/namespaces/default/pods";

#[derive(Deserialize)]
struct DesiredPods {
    metadata: ObjectMeta,
}

impl Named for DesiredPods {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}

impl Projection for DesiredPods {
    const RESOURCE: Resource = CONFIG_MAPS;
}

/// Makes a Pod for each ConfigMap. Of some it thinks until it is let go.
struct Stubborn {
    begun: Mutex<mpsc::Sender<String>>,
    held: Arc<HeldKeys>,
}

#[derive(Default)]
struct HeldKeys {
    names: Mutex<BTreeSet<String>>,
    bell: Condvar,
}

impl HeldKeys {
    fn hold(&self, name: &str) {
        self.names.lock().insert(name.to_owned());
    }

    fn let_go(&self) {
        self.names.lock().clear();
        self.bell.notify_all();
    }

    fn wait(&self, name: &str) {
        let mut names = self.names.lock();
        while names.contains(name) {
            self.bell.wait(&mut names);
        }
    }
}

impl Controller for Stubborn {
    fn name(&self) -> &'static str {
        "stubborn"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<DesiredPods>(Wakes::Itself)]
    }

    fn writes(&self) -> &'static [Write] {
        const { &[Write { verb: Verb::Create, resource: PODS, fields: &[] }] }
    }

    fn reconcile(&self, view: &View, key: &Key, _now: Time) -> Plan {
        if view.get::<DesiredPods>(key).is_none() {
            return Plan::default();
        }
        self.begun.lock().send(key.name.clone()).expect("the test listens");
        self.held.wait(&key.name);
        assert!(!key.name.starts_with("panic"), "as was wished");
        let object = json!({"metadata": {"name": key.name, "namespace": "default"}});
        Plan { effects: vec![Effect::Create { resource: PODS, object }], ..Plan::default() }
    }
}

/// Lets go of whatever is held, also where a test fails: a thread that stands still would keep the process.
struct LetGo(Arc<HeldKeys>);

impl Drop for LetGo {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

struct World {
    api: Arc<FakeApi>,
    journal: Arc<JournalBook>,
    loops: Loops,
    watchdog: Watchdog,
    begun: mpsc::Receiver<String>,
    held: LetGo,
    over: BoxFuture<'static, ()>,
    shutdown: tokio::sync::watch::Sender<bool>,
}

impl World {
    /// One thread, as on a small machine.
    fn begin() -> Self {
        let (api, journal) = (FakeApi::new(), Arc::new(JournalBook::default()));
        let loops = Loops::unwatched(1, Handle::current(), journal.clone(), clock()).expect("threads");
        let watchdog = Watchdog::new(loops.inner.clone());
        let (sender, begun) = mpsc::channel();
        let held = Arc::new(HeldKeys::default());
        let mind = Arc::new(Stubborn { begun: Mutex::new(sender), held: held.clone() });
        let informers = SharedInformers::new(api.client());
        tokio::spawn(informers.clone().run(std::future::pending()));
        let (shutdown, told) = tokio::sync::watch::channel(false);
        let (client, book) = (api.client(), journal.clone());
        let over = loops.spawn("stubborn", move || {
            let mut told = told.clone();
            let ended = async move { drop(told.wait_for(|it| *it).await) };
            let (mind, client, book) = (mind.clone(), client.clone(), book.clone());
            Arc::new(ControllerLoop::new(mind, client, &informers, clock(), book, ended))
        });
        Self { api, journal, loops, watchdog, begun, held: LetGo(held), over, shutdown }
    }

    fn wish(&self, name: &str) {
        self.api.put(&format!("{CONFIG}/{name}"), json!({"metadata": {"name": name, "namespace": "default"}}));
    }

    fn thinks_of(&self, name: &str) {
        loop {
            match self.begun.recv_timeout(PATIENCE) {
                Ok(begun) if begun == name => return,
                Ok(_) => {}
                Err(_) => panic!("nobody thinks of {name}"),
            }
        }
    }

    fn has_made(&self, name: &str) {
        let is_made = || self.api.object(&format!("{POD}/{name}")).is_some();
        comes_to_be(is_made, &format!("the pod {name}"));
    }

    /// A second passes for the watchdog.
    fn look(&mut self) {
        (0..=LOOKS_MAX).for_each(|_| self.watchdog.look());
    }

    fn decision(&self, name: &str) -> Option<Decision> {
        self.journal.decisions(&CONFIG_MAPS, &Key::new("default", name)).pop()
    }
}

fn comes_to_be(is_so: impl Fn() -> bool, what: &str) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{what} does not come to be");
        std::thread::yield_now();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mind_that_does_not_come_back_costs_one_key() {
    let mut world = World::begin();
    world.held.0.hold("held");
    world.wish("held");
    world.thinks_of("held");
    world.look();
    // The others go on, and the key is not asked about again however often it changes.
    for name in ["a", "b"] {
        world.wish("held");
        world.wish(name);
        world.thinks_of(name);
        world.has_made(name);
    }
    assert!(world.api.object(&format!("{POD}/held")).is_none());
    let said = world.decision("held").expect("it is named");
    assert_eq!((&*said.by, &*said.waits[0].reason), ("stubborn", REASON));
    assert!(said.waits[0].message.contains("other keys are looked after"), "{}", said.waits[0].message);
    let (longest, _) = world.journal.queue("stubborn").thinking();
    assert!(longest > Duration::ZERO);
    // What it comes back with counts.
    world.held.0.let_go();
    world.has_made("held");
    comes_to_be(|| world.decision("held").is_some_and(|it| it.waits.is_empty()), "a decision without a wait");
    world.wish("c");
    world.thinks_of("c");
    world.has_made("c");
    comes_to_be(|| world.journal.queue("stubborn").thinking().0 == Duration::ZERO, "the end of all thoughts");
    world.shutdown.send_replace(true);
    tokio::time::timeout(PATIENCE, world.over).await.expect("it ends");
    world.loops.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_come_back_holds_up_no_end() {
    let mut world = World::begin();
    world.held.0.hold("held");
    world.wish("held");
    world.thinks_of("held");
    world.look();
    world.shutdown.send_replace(true);
    world.loops.begin_stop();
    tokio::time::timeout(PATIENCE, world.over).await.expect("another thread brings it to its end");
    world.loops.stop();
}

/// Each takes a thread: after a few no other is tried, and all go on once these have come back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_few_are_set_aside() {
    let mut world = World::begin();
    for name in ["h0", "h1", "h2", "h3"] {
        world.held.0.hold(name);
        world.wish(name);
        world.thinks_of(name);
        world.look();
    }
    let said = world.decision("h3").expect("it is named").waits.remove(0).message;
    assert!(said.contains("begins nothing new"), "{said}");
    let n_before = world.journal.queue("stubborn").adds();
    world.wish("a");
    comes_to_be(|| world.journal.queue("stubborn").adds() > n_before, "a key more");
    assert!(world.begun.try_recv().is_err(), "it is asked about no other");
    world.held.0.let_go();
    ["a", "h0", "h1", "h2", "h3"].iter().for_each(|it| world.has_made(it));
    world.loops.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mind_that_breaks_costs_one_key_also_late() {
    let mut world = World::begin();
    world.held.0.hold("panic-late");
    world.wish("panic-late");
    world.thinks_of("panic-late");
    world.look();
    world.wish("panic");
    world.thinks_of("panic");
    world.held.0.let_go();
    for name in ["panic", "panic-late"] {
        let is_named = |it: &Decision| it.waits.iter().any(|it| it.reason == "LoopPanicked") && it.retries > 0;
        comes_to_be(|| world.decision(name).as_ref().is_some_and(is_named), name);
    }
    world.wish("a");
    world.has_made("a");
    world.loops.stop();
}

/// Nobody can take it over, as its future is its state: the others go on, and its end is not waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_whole_loop_that_stands_still_keeps_nobody() {
    let journal = Arc::new(JournalBook::default());
    let loops = Loops::unwatched(1, Handle::current(), journal.clone(), clock()).expect("threads");
    let mut watchdog = Watchdog::new(loops.inner.clone());
    let held = LetGo(Arc::new(HeldKeys::default()));
    held.0.hold("whole");
    let (begun, begins) = mpsc::channel();
    let (own, book) = (held.0.clone(), journal.clone());
    let over = loops.spawn("whole", move || {
        let (own, begun, book) = (own.clone(), begun.clone(), book.clone());
        whole(async move {
            let counts = book.queue("whole");
            let thought = counts.thinking.begin(None);
            thought.about(Some(Key::new("default", "p")), Some((PODS, Key::new("default", "p"))));
            begun.send(()).expect("the test listens");
            own.wait("whole");
        })
    });
    begins.recv_timeout(PATIENCE).expect("it begins");
    (0..=LOOKS_MAX).for_each(|_| watchdog.look());
    let others = loops.spawn("other", || whole(async {}));
    tokio::time::timeout(PATIENCE, others).await.expect("others run");
    let said = journal.decisions(&PODS, &Key::new("default", "p"));
    assert_eq!((&*said[0].by, &*said[0].waits[0].reason), ("whole", REASON));
    loops.begin_stop();
    tokio::time::timeout(PATIENCE, over).await.expect("nobody waits for it");
    // Once it is back nothing is said of it any more.
    held.0.let_go();
    let is_back = || loops.inner.threads.lock().iter().any(|it| it.has_ended.load(Relaxed));
    comes_to_be(is_back, "the end of its thread");
    watchdog.look();
    assert_eq!(journal.decisions(&PODS, &Key::new("default", "p")), []);
    loops.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_so_many_threads_are_replaced() {
    let loops = Loops::unwatched(1, Handle::current(), Arc::default(), clock()).expect("threads");
    let mut watchdog = Watchdog::new(loops.inner.clone());
    let held = LetGo(Arc::new(HeldKeys::default()));
    held.0.hold("all");
    for nth in 0..=STUCK_MAX {
        let (begun, begins) = mpsc::channel();
        let own = held.0.clone();
        drop(loops.spawn(&format!("loop-{nth:02}"), move || {
            let (own, begun) = (own.clone(), begun.clone());
            whole(async move {
                begun.send(()).expect("the test listens");
                own.wait("all");
            })
        }));
        begins.recv_timeout(PATIENCE).expect("it begins");
        (0..=LOOKS_MAX).for_each(|_| watchdog.look());
    }
    assert_eq!(loops.inner.threads.lock().len(), STUCK_MAX + 1);
    held.0.let_go();
    loops.stop();
}

/// It rests before it is begun anew, longer each time, and what it waited for before does not wake it.
#[tokio::test(start_paused = true)]
async fn a_loop_that_breaks_is_begun_anew() {
    let loops = Loops::unwatched(1, Handle::current(), Arc::default(), clock()).expect("threads");
    let begin = tokio::time::Instant::now();
    let n_made = Arc::new(AtomicU64::new(0));
    let made = n_made.clone();
    let over = loops.spawn("fragile", move || {
        let nth = made.fetch_add(1, Relaxed);
        whole(async move { assert!(nth >= 3, "as was wished") })
    });
    over.await;
    assert_eq!(n_made.load(Relaxed), 4);
    assert!(begin.elapsed() >= Duration::from_secs(1 + 2 + 4), "{:?}", begin.elapsed());
    loops.stop();
}

/// What it is made with may break as well, and one that has run for long begins to count its breaks again.
#[tokio::test(start_paused = true)]
async fn the_rest_grows_with_breaks_in_a_row_only() {
    const LONG: Duration = Duration::from_secs(3600);
    let loops = Loops::unwatched(1, Handle::current(), Arc::default(), clock()).expect("threads");
    let begin = tokio::time::Instant::now();
    let n_made = Arc::new(AtomicU64::new(0));
    let made = n_made.clone();
    let over = loops.spawn("fragile", move || match made.fetch_add(1, Relaxed) {
        0 => whole(async { panic!("as was wished") }),
        1 => panic!("while it is made"),
        2 => whole(async {
            tokio::time::sleep(LONG).await;
            panic!("late");
        }),
        _ => whole(async {}),
    });
    over.await;
    assert_eq!(n_made.load(Relaxed), 4);
    let rested = begin.elapsed().saturating_sub(LONG);
    assert!((Duration::from_secs(1 + 2 + 1)..Duration::from_secs(1 + 2 + 4)).contains(&rested), "{rested:?}");
    loops.stop();
}

/// Nobody waits out the rest of a loop that broke when all is to end.
#[tokio::test(start_paused = true)]
async fn a_loop_that_rests_ends_with_the_others() {
    let loops = Loops::unwatched(1, Handle::current(), Arc::default(), clock()).expect("threads");
    let (breaks, broke) = oneshot::channel::<()>();
    let breaks = Mutex::new(Some(breaks));
    let over = loops.spawn("broken", move || {
        let breaks = breaks.lock().take();
        whole(async move {
            drop(breaks);
            panic!("as was wished");
        })
    });
    let _dropped = broke.await;
    let begin = tokio::time::Instant::now();
    loops.begin_stop();
    over.await;
    assert!(begin.elapsed() < REST_FIRST, "{:?}", begin.elapsed());
    loops.stop();
}

/// A waker that outlives its loop holds nothing of it: it may be dropped under a lock that the loop's own end would take.
#[tokio::test]
async fn what_a_loop_is_made_of_ends_with_it_and_not_with_its_wakers() {
    let loops = Loops::unwatched(1, Handle::current(), Arc::default(), clock()).expect("threads");
    let held: Arc<Mutex<Option<Waker>>> = Arc::default();
    let made_of = Arc::new(());
    let alive = Arc::downgrade(&made_of);
    let kept = held.clone();
    let over = loops.spawn("short", move || {
        let (kept, made_of) = (kept.clone(), made_of.clone());
        whole(std::future::poll_fn(move |context| {
            let _part = &made_of;
            let is_second = kept.lock().replace(context.waker().clone()).is_some();
            context.waker().wake_by_ref();
            if is_second { Poll::Ready(()) } else { Poll::Pending }
        }))
    });
    over.await;
    assert!(alive.upgrade().is_none(), "its waker is there still, and what it was made of is not");
    held.lock().take().expect("it was polled").wake();
    loops.stop();
}
