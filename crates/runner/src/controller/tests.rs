use std::sync::atomic::{AtomicUsize, Ordering};

use corten_api::resources::{CONFIG_MAPS, PODS, SECRETS};
use corten_meta::{Named, ObjectMeta, ObjectReference};
use corten_reconcile::{
    Actor, Answer, ApiPath, CountedLook, Decision, EventType, LoopMetric, MetricKind, Projection, Propagation, Verb,
    View, Wait, Wake, Watch, Write,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::*;
use crate::fake::{FakeApi, Fault, clock};

/// A ConfigMap that says what the mind under test is to want.
#[derive(Clone, Deserialize)]
struct DesiredPods {
    metadata: ObjectMeta,
    #[serde(default)]
    data: BTreeMap<String, String>,
}
#[derive(Deserialize)]
struct Pod {
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
impl Named for Pod {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}
impl Projection for Pod {
    const RESOURCE: Resource = PODS;
}

/// Keeps `data.pods` pods for each ConfigMap, and does what else its data says.
#[derive(Default)]
struct Wishes {
    n_asked: AtomicUsize,
}

impl Controller for Wishes {
    fn name(&self) -> &'static str {
        "wishes"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<DesiredPods>(Wake::Itself), Watch::new::<Pod>(Wake::Controller("ConfigMap"))]
    }

    fn writes(&self) -> &'static [Write] {
        const WRITES: &[Write] = &[
            Write { verb: Verb::Create, resource: PODS, fields: &[] },
            Write { verb: Verb::Delete, resource: PODS, fields: &[] },
            Write { verb: Verb::Patch, resource: CONFIG_MAPS, fields: &["metadata.labels", "metadata.annotations"] },
        ];
        WRITES
    }

    fn remembers_what_is_gone(&self) -> bool {
        true
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        self.n_asked.fetch_add(1, Ordering::SeqCst);
        let mut plan = Plan::default();
        let Some(desired) = view.get::<DesiredPods>(key) else {
            let note = view.note(key).and_then(Value::as_str);
            let told = note.map(|it| [event(key, it), Effect::Remember { note: Value::Null }]);
            return Plan { effects: told.into_iter().flatten().collect(), ..plan };
        };
        let pods: Vec<&Pod> = view.owned_by::<Pod>(&desired.metadata.uid).collect();
        if let Some(wanted) = desired.data.get("pods").map(|it| it.parse().expect("a number")) {
            plan.effects.extend((pods.len()..wanted).map(|_| create(desired)));
            plan.effects.extend(pods.iter().skip(wanted).map(|it| delete(&it.metadata)));
        }
        for (name, value) in &desired.data {
            match &**name {
                "panic" => panic!("as was wished"),
                "fixed" if !pods.iter().any(|it| it.metadata.name == *value) => {
                    plan.effects.push(fixed(desired, value));
                }
                "label" if desired.metadata.labels.get("label") != Some(value) => {
                    let meta =
                        json!({"labels": {"label": value}, "resourceVersion": desired.metadata.resource_version});
                    plan.effects.push(patch(key, json!({"metadata": meta})));
                }
                "undeclared" => plan.effects.push(patch(key, json!({"data": {"undeclared": null}}))),
                "event" => plan.effects.push(event(key, value)),
                "labelled" if !plan.effects.is_empty() => {
                    plan.effects.push(Effect::Count(WISHED.count(&[value], 1.0)));
                }
                "counted" => plan.look = Some(CountedLook { total: &LOOKS, seconds: &LOOKS_TOOK, labels: vec!["x"] }),
                "count" => plan.effects.push(Effect::Count(WISHED.count(&[value], 1.0))),
                "remember" if view.note(key) != Some(&json!(value)) => {
                    plan.effects.push(Effect::Remember { note: json!(value) });
                }
                "wait" => plan.waits.push(Wait::new("Wished", &**value, Actor::Author)),
                "wake" => plan.wake_at = Some(now.after(Duration::from_secs(value.parse().expect("a number")))),
                "look" => {
                    let path = ApiPath { path: value.clone(), query: Vec::new() };
                    match view.brought_for_all(key, &path, now).map(|it| it.read_as(text_of)) {
                        None => plan.effects.push(Effect::FetchForAll(path)),
                        Some(read) => {
                            plan.waits.push(Wait::new("Seen", read.cloned().unwrap_or_default(), Actor::Cluster))
                        }
                    }
                }
                "ask" if view.answer(&SECRETS, &Key::cluster(value)).is_none() => {
                    plan.effects.push(Effect::Ask { resource: SECRETS, key: Key::cluster(value) });
                }
                "ask" => {
                    let answer = view.answer(&SECRETS, &Key::cluster(value));
                    let reason = if answer == Some(&Answer::Missing) { "Missing" } else { "Found" };
                    plan.waits.push(Wait::new(reason, "", Actor::Cluster));
                }
                _ => {}
            }
        }
        plan
    }
}

static WISHED: LoopMetric =
    LoopMetric { name: "wished_total", help: "What was wished.", labels: &["what"], kind: MetricKind::Counter };
static LOOKS: LoopMetric =
    LoopMetric { name: "looks_total", help: "Looks.", labels: &["mode", "result"], kind: MetricKind::Counter };
static LOOKS_TOOK: LoopMetric = LoopMetric {
    name: "looks_seconds",
    help: "How long they took.",
    labels: &["mode", "result"],
    kind: MetricKind::Histogram(&[1.0]),
};

fn event(key: &Key, message: &str) -> Effect {
    let about = ObjectReference { name: key.name.clone(), namespace: "default".into(), ..Default::default() };
    Effect::Event { about, event_type: EventType::Normal, reason: "Wished", message: message.to_owned() }
}

fn text_of(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).expect("it is JSON");
    body["data"]["text"].as_str().unwrap_or_default().to_owned()
}

fn owner(desired: &DesiredPods) -> Value {
    json!([{"kind": "ConfigMap", "apiVersion": "v1", "name": desired.metadata.name, "uid": desired.metadata.uid,
            "controller": true}])
}

fn create(desired: &DesiredPods) -> Effect {
    let generate = format!("{}-", desired.metadata.name);
    let metadata = json!({"namespace": "default", "generateName": generate, "ownerReferences": owner(desired)});
    Effect::Create { resource: PODS, object: json!({"metadata": metadata}) }
}

fn fixed(desired: &DesiredPods, name: &str) -> Effect {
    let metadata = json!({"namespace": "default", "name": name, "ownerReferences": owner(desired)});
    Effect::Create { resource: PODS, object: json!({"metadata": metadata}) }
}

fn delete(meta: &ObjectMeta) -> Effect {
    let (key, uid) = (meta.key(), meta.uid.clone());
    Effect::Delete { resource: PODS, key, uid, propagation: Propagation::Background, grace_seconds: None }
}

fn patch(key: &Key, patch: Value) -> Effect {
    Effect::Patch { resource: CONFIG_MAPS, key: key.clone(), subresource: None, patch }
}

struct World {
    api: Arc<FakeApi>,
    informers: SharedInformers,
    journal: Arc<JournalBook>,
    mind: Arc<Wishes>,
    running: tokio::task::JoinHandle<()>,
    shutdown: oneshot::Sender<()>,
}

const CONFIG: &str = "/api/v1/namespaces/default/configmaps";
const POD: &str = "/api/v1/namespaces/default/pods";
const POSTED: &str = "POST /api/v1/namespaces/default/pods";

impl World {
    fn begin(api: Arc<FakeApi>) -> Self {
        let mind = Arc::new(Wishes::default());
        Self::of(mind.clone(), mind, api)
    }

    fn of(minds: Arc<dyn Controller>, mind: Arc<Wishes>, api: Arc<FakeApi>) -> Self {
        let journal = Arc::new(JournalBook::default());
        let (shutdown, ended) = oneshot::channel();
        let (informers, client, book) = (SharedInformers::new(api.client()), api.client(), journal.clone());
        let seen = informers.clone();
        let loop_ = async move {
            let running = run_controller(minds, client, &informers, clock(), book, async move {
                let _either = ended.await;
            });
            // The informers have no end of its own here.
            tokio::select! {
                biased;
                () = running => {}
                () = informers.clone().run(std::future::pending()) => {}
            }
        };
        Self { api, informers: seen, journal, mind, running: tokio::spawn(loop_), shutdown }
    }

    fn wish(&self, name: &str, data: Value) {
        let path = format!("{CONFIG}/{name}");
        let mut object = self.api.object(&path).unwrap_or(json!({"metadata": {"name": name, "namespace": "default"}}));
        object["data"] = data;
        self.api.put(&path, object);
    }

    fn decision(&self, name: &str) -> Option<Decision> {
        self.journal.decisions(&CONFIG_MAPS, &Key::new("default", name)).pop()
    }

    fn n_pods(&self) -> usize {
        self.api.objects(POD).len()
    }
}

async fn pass(seconds: u64) {
    tokio::time::advance(Duration::ZERO).await;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_list_that_fails_says_so_until_it_comes() {
    let api = FakeApi::new();
    api.put(&format!("{CONFIG}/a"), json!({"metadata": {"name": "a", "namespace": "default"}, "data": {"wait": "x"}}));
    api.list_no_more(Some("/api/v1/pods"));
    let world = World::begin(api.clone());
    pass(15).await;
    let told = world.decision("a").expect("it is told");
    let [wait] = &told.waits[..] else { panic!("one wait: {told:?}") };
    assert_eq!((&*wait.reason, wait.actor), ("ListFailing", Actor::Operator));
    let begins = "the loop wishes decides about nothing before it sees pods: cannot list: ";
    assert!(wait.message.starts_with(begins) && wait.message.ends_with("(503)"), "{}", wait.message);
    assert_eq!(world.mind.n_asked.load(Ordering::SeqCst), 0);
    api.list_no_more(None);
    pass(60).await;
    let reasons: Vec<_> = world.decision("a").expect("it is decided").waits.into_iter().map(|it| it.reason).collect();
    assert_eq!(reasons, ["Wished"]);
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_lags_never_makes_it_do_a_thing_twice() {
    for is_foreign in [false, true] {
        let world = World::begin(FakeApi::new());
        if is_foreign {
            world.api.become_foreign();
        }
        world.api.delay_watches(Duration::from_secs(3));
        world.wish("a", json!({"pods": "3"}));
        pass(60).await;
        assert_eq!(world.api.writes(), [POSTED; 3]);
        world.wish("a", json!({"pods": "1"}));
        pass(60).await;
        assert_eq!((world.n_pods(), world.api.writes().len()), (1, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_is_looked_up_before_anything_is_done_again() {
    let world = World::begin(FakeApi::new());
    pass(1).await;
    world.api.delay_watches(Duration::from_secs(3600));
    for fault in [Fault::AnswerLost("POST"), Fault::Refused("POST", 500, "InternalError"), Fault::AnswerLost("POST")] {
        world.api.fault(fault);
    }
    world.wish("a", json!({"pods": "4"}));
    pass(4000).await;
    assert_eq!(world.n_pods(), 4);
    assert_eq!(world.api.writes(), [POSTED; 4], "beside the one that was refused");
}

#[tokio::test(start_paused = true)]
async fn a_conflict_waits_for_the_newer_object() {
    let world = World::begin(FakeApi::new());
    world.wish("a", json!({}));
    pass(1).await;
    world.api.delay_watches(Duration::from_secs(5));
    // The delay counts for watches begun from now on: make the informers begin theirs anew.
    pass(1200).await;
    world.wish("a", json!({"label": "x"}));
    pass(6).await;
    // Somebody writes between what the loop has seen and what it does.
    world.wish("a", json!({"label": "y"}));
    world.wish("a", json!({"label": "z"}));
    pass(60).await;
    let labels = world.api.object(&format!("{CONFIG}/a")).expect("stored")["metadata"]["labels"].clone();
    assert_eq!(labels, json!({"label": "z"}));
    assert!(world.api.writes().len() <= 3, "a conflict is not hammered on");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_there_already_is_waited_for() {
    let world = World::begin(FakeApi::new());
    world.api.delay_watches(Duration::from_secs(5));
    world.wish("a", json!({"fixed": "p"}));
    let owner = json!([{"kind": "ConfigMap", "apiVersion": "v1", "name": "a", "controller": true,
                        "uid": format!("uid-of-{CONFIG}/a")}]);
    pass(4).await;
    world
        .api
        .put(&format!("{POD}/p"), json!({"metadata": {"name": "p", "namespace": "default", "ownerReferences": owner}}));
    pass(60).await;
    assert_eq!(world.api.writes(), [POSTED], "asked for once, then seen");
    assert_eq!(world.decision("a").expect("journalled").error, None);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_time_is_asked_again_when_the_clock_was_set() {
    let world = World::begin(FakeApi::new());
    world.wish("a", json!({"wake": "500"}));
    pass(1).await;
    let n_asked = || world.mind.n_asked.load(Ordering::SeqCst);
    let before = n_asked();
    for n in 1..3 {
        pass(10).await;
        assert_eq!(n_asked(), before + n - 1, "nothing has happened");
        world.informers.clock_was_set();
        pass(0).await;
        assert_eq!(n_asked(), before + n);
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_key_fetched_for_all_is_shown_to_others_for_a_second() {
    let world = World::begin(FakeApi::new());
    let path = format!("{CONFIG}-elsewhere/x");
    let says = |text: &str| world.api.put(&path, json!({"metadata": {"name": "x"}, "data": {"text": text}}));
    let seen = |name: &str| world.decision(name).map(|it| it.waits[0].message.clone());
    pass(5).await;
    for (name, text, after, expected) in [("a", "one", 0, "one"), ("b", "two", 0, "one"), ("c", "three", 2, "three")] {
        pass(after).await;
        says(text);
        world.wish(name, json!({"look": path}));
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(seen(name).as_deref(), Some(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_not_declared_is_not_done() {
    let world = World::begin(FakeApi::new());
    world.wish("a", json!({"undeclared": "", "pods": "1"}));
    pass(60).await;
    assert!(world.api.writes().is_empty(), "nothing of such a plan is done");
    let error = world.decision("a").expect("journalled").error;
    assert_eq!(error.as_deref(), Some("undeclared write: Patch of configmaps at data"));
}

#[tokio::test(start_paused = true)]
async fn failures_back_off_and_stand_in_the_journal() {
    let world = World::begin(FakeApi::new());
    for _ in 0..100 {
        world.api.fault(Fault::Refused("POST", 403, "Forbidden"));
    }
    world.wish("a", json!({"pods": "1"}));
    pass(60).await;
    let n = world.api.writes().len();
    assert_eq!(n, 0, "refused before it was carried out");
    let decision = world.decision("a").expect("journalled");
    assert!((12..16).contains(&decision.retries), "{} tries within a minute", decision.retries);
    assert_eq!(decision.error.as_deref(), Some("cannot create Pod default/a-*: Forbidden"));
    // Other keys are not held up, and this one recovers.
    world.wish("b", json!({"wait": "for it"}));
    pass(1).await;
    assert_eq!(world.decision("b").expect("journalled").waits[0].message, "for it");
    pass(4000).await;
    assert_eq!(world.n_pods(), 1);
    let decision = world.decision("a").expect("journalled");
    assert_eq!((decision.error, decision.retries), (None, 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_deleted_says_so_itself_until_it_is() {
    let world = World::begin(FakeApi::new());
    world.wish("a", json!({"fixed": "f"}));
    pass(1).await;
    assert_eq!(world.n_pods(), 1);
    let told = || world.journal.decisions(&PODS, &Key::new("default", "f")).pop().and_then(|it| it.error);
    for _ in 0..12 {
        world.api.fault(Fault::Refused("DELETE", 403, "denied"));
    }
    world.wish("a", json!({"pods": "0"}));
    pass(1).await;
    assert!(told().is_some_and(|it| it.ends_with("denied")), "{:?}", told());
    pass(60).await;
    assert_eq!((world.n_pods(), told()), (0, None));
}

#[tokio::test(start_paused = true)]
async fn another_object_of_the_name_does_not_wait_for_the_failures_of_the_first() {
    let world = World::begin(FakeApi::new());
    for _ in 0..12 {
        world.api.fault(Fault::Refused("POST", 403, "Forbidden"));
    }
    world.wish("a", json!({"pods": "1"}));
    // The twelfth failure is followed by a rest of ten seconds.
    pass(11).await;
    assert_eq!(world.decision("a").expect("journalled").retries, 12);
    world.api.remove(&format!("{CONFIG}/a"));
    world.wish("a", json!({"pods": "1"}));
    pass(1).await;
    assert_eq!(world.n_pods(), 1);
    let decision = world.decision("a").expect("journalled");
    assert_eq!((decision.error, decision.retries), (None, 0));
}

#[tokio::test(start_paused = true)]
async fn questions_are_answered_and_asked_again_only_after_a_resync() {
    let world = World::begin(FakeApi::new());
    world.wish("a", json!({"ask": "s"}));
    pass(1).await;
    assert_eq!(world.decision("a").expect("journalled").waits[0].reason, "Missing");
    world.api.put("/api/v1/secrets/s", json!({"metadata": {"name": "s"}}));
    pass(1200).await;
    assert_eq!(world.decision("a").expect("journalled").waits[0].reason, "Found");
}

#[tokio::test(start_paused = true)]
async fn it_looks_again_when_it_was_asked_to_and_now_and_then() {
    let world = World::begin(FakeApi::new());
    let asked = || world.mind.n_asked.swap(0, Ordering::SeqCst);
    world.wish("a", json!({"wake": "10"}));
    pass(95).await;
    assert_eq!(asked(), 10);
    world.wish("a", json!({}));
    pass(1).await;
    asked();
    pass(3600).await;
    assert_eq!(asked(), 6, "a resync every ten minutes");
    assert!(world.api.writes().is_empty(), "an idle loop writes nothing");
}

#[tokio::test(start_paused = true)]
async fn events_are_told_once_and_then_counted() {
    let world = World::begin(FakeApi::new());
    world.wish("a", json!({"event": "hello", "wake": "10"}));
    pass(45).await;
    let events = world.api.objects("/api/v1/namespaces/default/events");
    let [event] = &events[..] else { panic!("one event, not {}", events.len()) };
    assert_eq!((&event["count"], &event["message"]), (&json!(5), &json!("hello")));
    assert_eq!(event["source"]["component"], "wishes-controller");
    assert_eq!(event["firstTimestamp"], "1970-01-12T13:46:40Z");
    assert_eq!(event["lastTimestamp"], "1970-01-12T13:47:20Z");
    // Whoever tells without end is cut short.
    world.wish("a", json!({"event": "hello", "wake": "1"}));
    pass(300).await;
    let count = world.api.objects("/api/v1/namespaces/default/events")[0]["count"].as_u64().expect("a number");
    assert!(count <= 26, "{count} of one burst");
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_of_an_object_that_is_gone_is_shown_once() {
    let world = World::begin(FakeApi::new());
    let events = || world.api.objects("/api/v1/namespaces/default/events");
    world.wish("a", json!({"remember": "mine"}));
    pass(1).await;
    assert!(events().is_empty());
    world.api.remove(&format!("{CONFIG}/a"));
    pass(1).await;
    assert_eq!((events().len(), &events()[0]["message"]), (1, &json!("mine")));
    // Another one of the name has left no note.
    world.wish("a", json!({}));
    pass(1).await;
    world.api.remove(&format!("{CONFIG}/a"));
    pass(1200).await;
    assert_eq!((events().len(), &events()[0]["count"]), (1, &json!(1)));
}

/// Greets each ConfigMap once, under a key that no object has, and looks at it all the time.
struct Greetings;

impl Controller for Greetings {
    fn name(&self) -> &'static str {
        "greetings"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<DesiredPods>(Wake::With(|_, it| vec![Key::new("greetings", &*it.name)]))]
    }

    fn writes(&self) -> &'static [Write] {
        &[]
    }

    fn is_made_up(&self, key: &Key) -> bool {
        key.namespace == "greetings"
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let is_there = view.get::<DesiredPods>(&Key::new("default", &*key.name)).is_some();
        let effects = match (is_there, view.note(key)) {
            (true, None) => vec![event(key, "hello"), Effect::Remember { note: json!("greeted") }],
            (false, Some(_)) => vec![event(key, "bye"), Effect::Remember { note: Value::Null }],
            _ => Vec::new(),
        };
        Plan { effects, wake_at: is_there.then(|| now.after(Duration::from_secs(1))), ..Plan::default() }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_of_a_made_up_key_is_kept_until_the_mind_forgets_it() {
    let world = World::of(Arc::new(Greetings), Arc::default(), FakeApi::new());
    let told = || {
        let events = world.api.objects("/api/v1/namespaces/default/events");
        let count =
            |of: &str| events.iter().find(|it| it["message"] == of).map_or(0, |it| it["count"].as_i64().unwrap_or(1));
        (count("hello"), count("bye"))
    };
    world.wish("a", json!({}));
    pass(20).await;
    assert_eq!(told(), (1, 0));
    world.api.remove(&format!("{CONFIG}/a"));
    pass(20).await;
    assert_eq!(told(), (1, 1));
    world.wish("a", json!({}));
    pass(20).await;
    assert_eq!(told(), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn what_an_effect_counts_is_counted_once_it_is_done() {
    let world = World::begin(FakeApi::new());
    let counted = || {
        let rows = world.journal.counted().into_iter().flat_map(|it| it.rows);
        rows.map(|it| (it.0[0].clone(), it.1.n)).collect::<Vec<_>>()
    };
    // The label is written first, and is refused for some seconds: what it counts is not counted.
    for _ in 0..12 {
        world.api.fault(Fault::Refused("PATCH", 403, "Forbidden"));
    }
    world.wish("a", json!({"label": "x", "labelled": "a"}));
    world.wish("b", json!({"count": "b"}));
    pass(1).await;
    assert_eq!(counted(), [("b".to_owned(), 1)]);
    pass(60).await;
    assert_eq!(counted(), [("a".to_owned(), 1), ("b".to_owned(), 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_look_is_counted_with_what_became_of_it() {
    let world = World::begin(FakeApi::new());
    let counted = |name: &str| {
        let all = world.journal.counted();
        let rows = all.into_iter().filter(|it| it.metric.name == name).flat_map(|it| it.rows);
        rows.map(|it| (it.0.join(" "), it.1.n)).collect::<Vec<_>>()
    };
    world.wish("a", json!({"counted": ""}));
    pass(1).await;
    let done = ("x success".to_owned(), 1);
    assert_eq!((counted("looks_total"), counted("looks_seconds")), (vec![done.clone()], vec![done]));
    // What cannot be done as a whole is an error, and is looked at again.
    world.api.fault(Fault::Refused("PATCH", 403, "Forbidden"));
    world.wish("b", json!({"label": "x", "counted": ""}));
    pass(60).await;
    let failed = counted("looks_total").into_iter().find(|it| it.0 == "x error");
    assert_eq!(failed, Some(("x error".to_owned(), 1)));
    assert_eq!(counted("looks_seconds"), counted("looks_total"));
}

#[tokio::test(start_paused = true)]
async fn a_panic_costs_one_key() {
    let world = World::begin(FakeApi::new());
    world.wish("a", json!({"panic": ""}));
    world.wish("b", json!({"pods": "1"}));
    pass(10).await;
    assert_eq!(world.n_pods(), 1);
    let error = world.decision("a").expect("journalled").error;
    assert_eq!(error.as_deref(), Some("the controller panicked, see the log"));
    // What is gone leaves no trace in the journal.
    world.api.remove(&format!("{CONFIG}/a"));
    pass(60).await;
    assert_eq!(world.decision("a"), None);
}

#[tokio::test(start_paused = true)]
async fn shutdown_lets_effects_end() {
    let world = World::begin(FakeApi::new());
    pass(1).await;
    world.wish("a", json!({"pods": "3"}));
    tokio::time::sleep(Duration::from_micros(1500)).await;
    world.shutdown.send(()).expect("it runs");
    world.running.await.expect("it ends");
    assert_eq!(world.api.objects(POD).len(), 3);
}
