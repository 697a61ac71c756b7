use std::collections::BTreeMap;

use corten_api::resources::PODS;
use serde_json::json;

use super::*;
use crate::{
    Informer, InformerEvent, InformerParams,
    script::{Answer, Script, event, pod},
};

/// Keeps in memory.
#[derive(Default)]
struct Memory {
    before: Mutex<BTreeMap<String, KeptList>>,
    told: Mutex<Vec<KeptChange>>,
    answers: Mutex<BTreeMap<String, Option<Bytes>>>,
}

impl Kept for Memory {
    fn has_before(&self, of: &str) -> bool {
        self.before.lock().contains_key(of)
    }

    fn before(&self, of: &str) -> Option<KeptList> {
        self.before.lock().get(of).cloned()
    }

    fn change(&self, _of: &str, change: KeptChange) {
        self.told.lock().push(change);
    }

    fn begin_owner(&self, _owner: &str) {}

    fn answer(&self, owner: &str, what: &str) -> Option<Option<Bytes>> {
        self.answers.lock().get(&format!("{owner} {what}")).cloned()
    }

    fn keep_answer(&self, owner: &str, what: &str, answer: Option<Bytes>) {
        self.answers.lock().insert(format!("{owner} {what}"), answer);
    }

    fn forget_answer(&self, owner: &str, what: &str) {
        self.answers.lock().remove(&format!("{owner} {what}"));
    }

    fn forget_owner(&self, owner: &str) {
        self.answers.lock().retain(|it, _| !it.starts_with(owner));
    }
}

const KEEPING: Keeping =
    Keeping { by: "test", fields: &[], essence: &["spec"], pause: Duration::from_secs(1), leaves_out: true };

fn list(version: u64, items: &[Value]) -> Answer {
    Answer::Json(200, json!({"metadata": {"resourceVersion": version.to_string()}, "items": items}))
}

fn informer(script: &Arc<Script>, memory: &Arc<Memory>) -> Informer {
    let client = script.client().with_kept(KeptAnswers::new(memory.clone()));
    Informer::new(client, InformerParams { keeping: Some(KEEPING), ..InformerParams::all(PODS) })
}

fn large() -> LeftOut {
    LeftOut { key: Key::new("default", "large"), uid: "u9".into() }
}

fn keeps_a_and_b() -> Arc<Memory> {
    let memory = Memory::default();
    let items = [pod("a", "u1", 3), pod("b", "u2", 9)].map(|it| Bytes::from(it.to_string()));
    let list = KeptList { items: items.to_vec(), version: "10".into(), left_out: vec![large()] };
    memory.before.lock().insert("test: pods   ".into(), list);
    Arc::new(memory)
}

async fn told(informer: &mut Informer) -> Vec<String> {
    let mut words = Vec::new();
    while let Ok(event) = tokio::time::timeout(Duration::from_secs(60), informer.next()).await {
        words.push(match event {
            InformerEvent::Applied(_, it) => format!("{}@{}", it.key.name, it.version),
            InformerEvent::Deleted(meta) => format!("-{}", meta.name),
            InformerEvent::Synced(version) => format!("={version}"),
        });
    }
    words
}

#[tokio::test(start_paused = true)]
async fn where_nobody_answers_what_was_kept_counts_until_somebody_does() {
    let mut answers: Vec<Answer> = (0..10).map(|_| Answer::Lost).collect();
    answers.push(list(30, &[pod("a", "u1", 3), pod("c", "u3", 20)]));
    let (script, memory) = (Script::new(answers), keeps_a_and_b());
    let mut informer = informer(&script, &memory);
    assert_eq!(informer.left_out(), [large()], "whoever asks knows of it before anything is told");
    // `a` is the same, and not told again; `b` went meanwhile.
    assert_eq!(told(&mut informer).await, ["a@3", "b@9", "=10", "c@20", "-b", "=30"]);
    let whole = memory.told.lock().iter().filter(|it| matches!(it, KeptChange::Whole { .. })).count();
    assert!(informer.left_out().is_empty(), "a server has told of all");
    assert_eq!(whole, 1, "only what a server has told is whole");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_late_or_says_no_is_waited_for() {
    let refused = || Answer::Json(403, json!({"kind": "Status", "code": 403}));
    for answers in [vec![Answer::Lost, list(30, &[])], (0..20).map(|_| refused()).chain([list(30, &[])]).collect()] {
        let script = Script::new(answers);
        let mut informer = informer(&script, &keeps_a_and_b());
        let mut words = Vec::new();
        while words.is_empty() {
            words = told(&mut informer).await;
        }
        assert_eq!(words, ["=30"]);
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_never_answers_is_not_waited_for_longer() {
    let (script, memory) = (Script::new(Vec::new()), keeps_a_and_b());
    let begun = Instant::now();
    let mut informer = informer(&script, &memory);
    assert!(matches!(informer.next().await, InformerEvent::Applied(..)));
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_is_told_is_kept_without_what_nobody_needs() {
    let mut managed = pod("a", "u1", 3);
    managed["metadata"]["managedFields"] = json!([{ "manager": "m" }]);
    let script = Script::new(vec![
        list(10, &[managed]),
        Answer::Open(vec![event("MODIFIED", &pod("a", "u1", 11)), event("DELETED", &pod("a", "u1", 12))]),
    ]);
    let memory = Arc::new(Memory::default());
    told(&mut informer(&script, &memory)).await;
    let told = memory.told.lock().clone();
    let [first, whole, second, gone] = &told[..] else { panic!("{told:?}") };
    let (KeptChange::Applied { object, essence, .. }, KeptChange::Applied { essence: same, .. }) = (first, second)
    else {
        panic!("{told:?}")
    };
    assert!(!String::from_utf8_lossy(object).contains("managedFields"));
    assert_eq!(essence, same, "only the version is another");
    assert!(matches!(whole, KeptChange::Whole { version, .. } if version == "10"));
    assert_eq!(*gone, KeptChange::Gone(Key::new("default", "a")));
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_given_again_to_its_owner_alone() {
    let script = Script::new(vec![
        Answer::Json(200, pod("a", "u1", 3)),
        Answer::Json(404, json!({"kind": "Status", "code": 404})),
        Answer::Lost,
        Answer::Lost,
        Answer::Lost,
    ]);
    let client = script.client().with_kept(KeptAnswers::new(Arc::new(Memory::default())));
    client.begin_owner("one");
    let (one, two) = (client.for_owner("one"), client.for_owner("two"));
    let (there, missing) = (Key::new("default", "a"), Key::new("default", "b"));
    one.get(&PODS, &there).await.expect("an answer");
    assert!(one.get(&PODS, &missing).await.is_err());
    one.get(&PODS, &there).await.expect("the same again");
    assert!(one.get(&PODS, &missing).await.expect_err("there was none").is_not_found());
    assert!(matches!(two.get(&PODS, &there).await, Err(Error::Transport(_))));
}

fn refused() -> Answer {
    Answer::Json(403, json!({"kind": "Status", "code": 403}))
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_when_its_owner_is_gone_is_not_kept() {
    let script = Script::new(vec![Answer::Json(200, pod("a", "u1", 3)), Answer::Json(200, pod("a", "u1", 4))]);
    let memory = Arc::new(Memory::default());
    let client = script.client().with_kept(KeptAnswers::new(memory.clone()));
    let (one, there, pods) = (client.for_owner("one"), Key::new("default", "a"), PODS);
    client.begin_owner("one");
    one.get(&PODS, &there).await.expect("an answer");
    assert_eq!(memory.answers.lock().len(), 1);
    let under_way = one.get(&pods, &there);
    client.forget_owner("one");
    under_way.await.expect("an answer");
    assert!(memory.answers.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_not_that_there_is_nothing() {
    let fine = || Answer::Json(200, pod("a", "u1", 3));
    let script = Script::new(vec![fine(), refused(), Answer::Lost, refused(), Answer::Lost, refused(), fine(), fine()]);
    let client = script.client().with_kept(KeptAnswers::new(Arc::new(Memory::default())));
    let (one, there) = (client.for_owner("one"), Key::new("default", "a"));
    client.begin_owner("one");
    one.get(&PODS, &there).await.expect("an answer");
    for _ in 0..2 {
        assert!(one.get(&PODS, &there).await.is_err(), "the server's word counts while it answers");
        tokio::time::advance(REFUSED_FOR * 2).await;
        one.get(&PODS, &there).await.expect("what was answered before the refusal");
    }
    // One refusal that an answer follows is over.
    assert!(one.get(&PODS, &there).await.is_err());
    one.get(&PODS, &there).await.expect("an answer");
    tokio::time::advance(REFUSED_FOR * 2).await;
    client.get(&PODS, &there).await.expect("an answer");
    assert!(client.kept().expect("it keeps").has_answer("one", "/api/v1/namespaces/default/pods/a"));
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_for_long_is_not_kept() {
    let fine = || Answer::Json(200, pod("a", "u1", 3));
    let script = Script::new(vec![fine(), refused(), fine(), refused(), fine(), Answer::Lost]);
    let client = script.client().with_kept(KeptAnswers::new(Arc::new(Memory::default())));
    let (one, there) = (client.for_owner("one"), Key::new("default", "a"));
    client.begin_owner("one");
    one.get(&PODS, &there).await.expect("an answer");
    for _ in 0..2 {
        assert!(one.get(&PODS, &there).await.is_err());
        tokio::time::advance(REFUSED_FOR / 2).await;
        // Whatever else is answered, the server is there.
        client.get(&PODS, &there).await.expect("an answer");
    }
    tokio::time::advance(REFUSED_FOR / 2).await;
    assert!(matches!(one.get(&PODS, &there).await, Err(Error::Transport(_))), "nothing is told in its place");
}

#[test]
fn a_part_is_what_its_paths_name() {
    let object = json!({
        "metadata": { "name": "a", "annotations": { "kubernetes.io/config.mirror": "x", "other": "y" } },
        "spec": { "containers": [{ "name": "c", "ports": [{ "containerPort": 80 }] }, { "name": "d" }] },
    });
    let paths = ["metadata.annotations.kubernetes.io/config.mirror", "spec.containers.ports"];
    let expected = json!({
        "metadata": { "annotations": { "kubernetes.io/config.mirror": "x" } },
        "spec": { "containers": [{ "ports": [{ "containerPort": 80 }] }, {}] },
    });
    assert_eq!(part(&object, &paths), expected);
}
