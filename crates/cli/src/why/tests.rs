//! Whole answers, as text: a world of objects, a question, and the screen it is answered with.
//!
//! A file in `testdata/why` is YAML documents (objects, journals, logs, refusals), then `---- why KIND/NAME` and the screen.
//! `UPDATE=1 cargo test -p corten-cli` rewrites the screens. Every screen fits 24 lines of 100 columns.

use std::{cell::Cell, fs, path::Path};

use corten_api::resources::{JOURNALS, NAMESPACES};
use corten_client::{Error, ListParams, TransportError};
use corten_kinds::Kind;
use corten_meta::{Key, Resource, Status, Time};
use serde_json::{Value, json};

use super::{
    Explanation, PageStyle, Reader,
    custom::kind_named,
    explain,
    fields::{items, key_of, text},
    missing,
    reader::{Answer, Listed, Source},
    render, render_survey, survey, unknown_kind, unreadable,
};

use crate::cluster_place::ClusterPlace;

const NOW: &str = "2026-11-20T12:30:00Z";
const LOOK: PageStyle = PageStyle { width: 100, height: 24, colour: false };
const QUESTION: &str = "\n---- why";

struct World(Vec<Value>);

impl World {
    fn parse(text: &str) -> Self {
        let documents =
            text.split("\n---\n").filter(|it| it.lines().any(|it| !it.trim().is_empty() && !it.starts_with('#')));
        Self(
            documents.map(|it| serde_saphyr::from_str(it).unwrap_or_else(|error| panic!("{error} in\n{it}"))).collect(),
        )
    }

    /// `kind: Place`: where the cluster is, as seen from this machine.
    fn place(&self) -> ClusterPlace {
        let Some(place) = self.0.iter().find(|it| it["kind"] == "Place") else { return ClusterPlace::default() };
        let (server, data) = (text(place, "/server"), place["data"].as_str());
        match data.filter(|_| place["hasNode"] == true) {
            Some(data) => ClusterPlace::of_node(server, data),
            None => ClusterPlace::of_server(server, data),
        }
    }

    fn of<'a>(&'a self, resource: &'a Resource) -> impl Iterator<Item = &'a Value> {
        self.0.iter().filter(|it| it["kind"] == *resource.kind && it["apiVersion"] == resource.api_version())
    }

    fn refused(&self, resource: &Resource) -> Option<Error> {
        let is_it = |it: &Value| ["*", &*resource.plural].iter().any(|name| it["resource"] == *name);
        let refused = self.0.iter().any(|it| it["kind"] == "Refused" && is_it(it));
        let broken = self.0.iter().find(|it| it["kind"] == "Broken" && is_it(it));
        let broken = broken.map(|it| Error::Status(Box::new(Status::failure(500, "", text(it, "/message")))));
        broken.or(refused.then(|| Error::Status(Box::new(Status::failure(403, "Forbidden", "it is forbidden")))))
    }
}

/// As many as are asked for, from where the page before ended.
fn page(all: impl Iterator<Item = Value>, params: &ListParams) -> Listed {
    let (begin, n) = (params.continue_token.parse().unwrap_or(0), params.limit as usize);
    let mut rest = all.skip(begin);
    let items: Vec<Value> = rest.by_ref().take(if n == 0 { usize::MAX } else { n }).collect();
    let next = rest.next().map(|_| (begin + items.len()).to_string()).unwrap_or_default();
    Listed { items, next }
}

impl Source for World {
    fn get<'a>(&'a self, resource: &'a Resource, key: &'a Key) -> Answer<'a, Result<Value, Error>> {
        Box::pin(async move {
            if let Some(refused) = self.refused(resource) {
                return Err(refused);
            }
            // Where a world has objects there is a namespace, unless it says otherwise.
            let is_absent = self.0.iter().any(|it| it["kind"] == "Absent" && it["namespace"] == *key.name);
            let is_within =
                |it: &&Value| *resource == NAMESPACES && !is_absent && text(it, "/metadata/namespace") == key.name;
            let implied = || self.0.iter().find(is_within).map(|_| json!({"metadata": {"name": key.name}}));
            let found = self.of(resource).find(|it| key_of(it) == *key).cloned().or_else(implied);
            found.ok_or_else(|| Error::Status(Box::new(Status::not_found(resource, &key.name))))
        })
    }

    fn list<'a>(&'a self, resource: &'a Resource, params: &'a ListParams) -> Answer<'a, Result<Listed, Error>> {
        Box::pin(async move {
            if let Some(refused) = self.refused(resource) {
                return Err(refused);
            }
            let in_place =
                |it: &&Value| params.namespace.is_empty() || text(it, "/metadata/namespace") == params.namespace;
            let must_act = |it: &&Value| {
                let waits = items(it, "/decisions").iter().flat_map(|it| items(it, "/waits"));
                waits.clone().any(|it| it["actor"] != "Cluster")
            };
            if *resource == JOURNALS {
                return Ok(page(self.of(resource).filter(in_place).filter(must_act).cloned(), params));
            }
            let selected = |it: &&Value| {
                params
                    .field_selector
                    .split(',')
                    .filter_map(|it| it.split_once('='))
                    .all(|(path, value)| text(it, &format!("/{}", path.replace('.', "/"))) == value)
            };
            Ok(page(self.of(resource).filter(in_place).filter(selected).cloned(), params))
        })
    }

    fn list_metadata<'a>(
        &'a self,
        resource: &'a Resource,
        params: &'a ListParams,
    ) -> Answer<'a, Result<Listed, Error>> {
        Box::pin(async move {
            let objects = self.list(resource, params).await?;
            let items = objects.items.iter().map(|it| json!({"metadata": it["metadata"]})).collect();
            Ok(Listed { items, ..objects })
        })
    }

    fn groups<'a>(&'a self) -> Answer<'a, Result<Vec<Value>, Error>> {
        let groups = self.0.iter().filter(|it| it["kind"] == "APIGroupDiscovery").cloned().collect();
        Box::pin(std::future::ready(Ok(groups)))
    }

    fn log<'a>(&'a self, pod: &'a Key, container: &'a str, _previous: bool) -> Answer<'a, Result<String, Error>> {
        Box::pin(async move {
            let is_it = |it: &&Value| it["kind"] == "Log" && it["pod"] == *pod.name && it["container"] == container;
            Ok(self.0.iter().find(is_it).map(|it| text(it, "/text").to_owned()).unwrap_or_default())
        })
    }

    fn ready<'a>(&'a self, check: &'a str) -> Answer<'a, Result<(), Error>> {
        let is_it = |it: &&Value| it["kind"] == "Unready" && text(it, "/check") == check;
        let unready = self.0.iter().find(is_it).map(|it| text(it, "/message"));
        let answer = unready.map_or(Ok(()), |it| Err(Status::failure(500, "InternalError", it).into()));
        Box::pin(std::future::ready(answer))
    }
}

/// Gives every request the same answer, and counts them.
struct Refusing(Error, Cell<usize>);

impl Refusing {
    fn answer<T>(&self) -> Answer<'_, Result<T, Error>> {
        Box::pin(async {
            self.1.set(self.1.get() + 1);
            Err(self.0.clone())
        })
    }
}

impl Source for Refusing {
    fn get<'a>(&'a self, _resource: &'a Resource, _key: &'a Key) -> Answer<'a, Result<Value, Error>> {
        self.answer()
    }

    fn list<'a>(&'a self, _resource: &'a Resource, _params: &'a ListParams) -> Answer<'a, Result<Listed, Error>> {
        self.answer()
    }

    fn list_metadata<'a>(
        &'a self,
        _resource: &'a Resource,
        _params: &'a ListParams,
    ) -> Answer<'a, Result<Listed, Error>> {
        self.answer()
    }

    fn groups<'a>(&'a self) -> Answer<'a, Result<Vec<Value>, Error>> {
        self.answer()
    }

    fn log<'a>(&'a self, _pod: &'a Key, _container: &'a str, _previous: bool) -> Answer<'a, Result<String, Error>> {
        self.answer()
    }

    fn ready<'a>(&'a self, _check: &'a str) -> Answer<'a, Result<(), Error>> {
        self.answer()
    }
}

#[test]
fn who_saw_nothing_does_not_say_that_all_is_fine() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    for error in [
        Error::from(Status::failure(401, "Unauthorized", "Unauthorized")),
        Error::from(Status::failure(403, "Forbidden", "it is forbidden")),
        Error::from(TransportError("no answer".into())),
        Error::Decode("it is no list".into()),
    ] {
        for (namespace, kind) in [("", None), ("shop", None), ("shop", Some("deployment")), ("shop", Some("service"))] {
            let source = Refusing(error.clone(), Cell::default());
            let reader = Reader::new(&source, NOW.parse().expect("a time"));
            let kind = kind.and_then(corten_kinds::by_name);
            let said = runtime.block_on(survey(&reader, namespace, kind)).expect_err("nothing was seen");
            assert_eq!(said.to_string(), error.to_string(), "{namespace:?}");
            if matches!(error, Error::Transport(_)) {
                assert!(!runtime.block_on(reader.lacks_namespace("shop")));
                assert_eq!(source.1.get(), 1, "who does not answer is not asked again");
            }
        }
    }
}

fn answer(world: &World, question: &str) -> String {
    let now: Time = NOW.parse().expect("a time");
    let reader = Reader::new(world, now).at(world.place());
    let words: Vec<&str> = question.split_whitespace().collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let Some((kind, name)) = words.first().and_then(|it| it.split_once('/')) else {
            let (kind, namespace) = match words[..] {
                ["-A"] => (None, ""),
                [kind, "-n", namespace] => (kind_named(&reader, kind).await, namespace),
                [namespace] => (None, namespace),
                _ => panic!("{question} is no question"),
            };
            return match survey(&reader, namespace, kind).await {
                Ok(survey) => render_survey(&survey, now, LOOK),
                Err(error) => match kind {
                    Some(kind) => unlisted(&reader, &error, kind).await,
                    None => format!("error: {error}\n"),
                },
            };
        };
        let Some(kind) = kind_named(&reader, kind).await else {
            return unknown_kind(&reader, kind).await.text() + "\n";
        };
        let namespace = if kind.resource.namespaced { words.get(1).copied().unwrap_or("shop") } else { "" };
        let key = Key::new(namespace, name);
        match explain(&reader, kind, &key).await {
            Ok(it) => {
                can_be_followed(&it);
                render(&it, now, LOOK)
            }
            Err(error) if error.is_not_found() => missing(&reader, kind, &key).await.text() + "\n",
            Err(error) => match unreadable(&reader, &error, kind, &format!("{}/{}", kind.singular, key.name)).await {
                Some(failure) => failure.text() + "\n",
                None => panic!("{question}: {error}"),
            },
        }
    })
}

async fn unlisted(reader: &Reader<'_>, error: &Error, kind: &Kind) -> String {
    let failure = unreadable(reader, error, kind, &kind.resource.qualified()).await;
    failure.map_or_else(|| format!("error: {error}\n"), |it| it.text() + "\n")
}

/// Where somebody must act it says who and how, in words that a shell understands.
fn can_be_followed(it: &Explanation) {
    let Some(advice) = &it.advice else {
        assert!(!it.account.needs_somebody(), "{} says nobody what to do", it.account.subject);
        return;
    };
    assert!(!advice.who.is_empty(), "{}", it.account.subject);
    assert!(
        ["kubectl ", "corten ", "curl ", "chmod ", "ip ", "nft ", "ss "]
            .iter()
            .any(|known| advice.next.starts_with(known)),
        "{}",
        advice.next
    );
    let shell = std::process::Command::new("sh").args(["-n", "-c", &advice.next]).status().expect("a shell");
    assert!(shell.success(), "{}", advice.next);
}

#[test]
fn programs_find_the_documented_fields() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/why/workloads.txt");
    let file = fs::read_to_string(file).expect("a text");
    let world = World::parse(file.split(QUESTION).next().expect("a world"));
    let reader = Reader::new(&world, NOW.parse().expect("a time"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let kind = corten_kinds::by_name("deployment").expect("a kind");
    let explanation = runtime.block_on(explain(&reader, kind, &Key::new("shop", "rolling"))).expect("it is there");
    let json = serde_json::to_value(&explanation).expect("JSON");
    let keys = |it: &Value| {
        let mut keys: Vec<&str> = it.as_object().into_iter().flatten().map(|it| it.0.as_str()).collect();
        keys.sort_unstable();
        keys.join(" ")
    };
    assert_eq!(keys(&json), "advice apiVersion causes kind namespace root state subject summary");
    assert_eq!(keys(&json["root"]), "actor by message namespace reason since step subject");
    assert_eq!(keys(&json["advice"]), "hints next who");
    assert_eq!(keys(&json["causes"][1]), "actor because by message on reason since");
    let set = &json["causes"][1]["because"];
    assert_eq!(keys(set), "causes namespace state subject summary");
    let pod = &set["causes"][0]["because"];
    assert_eq!(keys(pod), "namespace state steps subject summary");
    assert_eq!(keys(&pod["steps"][3]), "message name started state wait");
    assert_eq!((&json["kind"], &json["state"]), (&"Explanation".into(), &"Blocked".into()));
}

#[test]
fn every_answer_is_right_and_fits_one_screen() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/why");
    let mut paths: Vec<_> = fs::read_dir(&folder).expect("the folder").map(|it| it.expect("an entry").path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let file = fs::read_to_string(&path).expect("a text");
        let mut parts = file.split(QUESTION);
        let world_text = parts.next().unwrap_or_default();
        let world = World::parse(world_text);
        let mut said = world_text.to_owned();
        for part in parts {
            let question = part.lines().next().unwrap_or_default().trim();
            let screen = answer(&world, question);
            let n_lines = screen.lines().count();
            assert!(n_lines <= 24, "{n_lines} lines in {}:\n{screen}", path.display());
            for line in screen.lines() {
                assert!(line.chars().count() <= 100, "a line too long in {}: {line}", path.display());
            }
            said.push_str(&format!("{QUESTION} {question}\n{screen}"));
        }
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, &said).expect("written");
        } else {
            assert_eq!(file, said, "in {}; UPDATE=1 rewrites it", path.display());
        }
    }
}

#[test]
fn of_many_the_unwell_are_explained_and_the_others_counted() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let pod = |n: usize, phase: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("web-{n:03}"), "namespace": "shop"},
               "spec": {"nodeName": "n1"}, "status": {"phase": phase}})
    };
    let names = |it: &super::Survey| {
        let subjects = it.groups.iter().flat_map(|it| &it.subjects);
        subjects.map(|it| it.subject.clone()).collect::<std::collections::BTreeSet<_>>()
    };
    for (n_well, n_unwell, n_explained, n_unwell_left, n_well_left) in [(99, 1, 1, 0, 60), (10, 50, 40, 10, 10)] {
        let well = (0..n_well).map(|n| pod(n, "Succeeded"));
        let unwell = (n_well..n_well + n_unwell).map(|n| pod(n, "Failed"));
        let world = World(well.chain(unwell).collect());
        let reader = Reader::new(&world, NOW.parse().expect("a time"));
        let found = runtime.block_on(survey(&reader, "shop", corten_kinds::by_name("pod"))).expect("seen");
        assert_eq!(
            (names(&found).len(), found.not_looked_at, found.well_not_looked_at),
            (n_explained, n_unwell_left, n_well_left)
        );
        let screen = render_survey(&found, NOW.parse().expect("a time"), LOOK);
        assert!(screen.contains(&format!("{n_well_left} objects more look well")), "{screen}");
    }
}

#[test]
fn all_that_are_there_are_looked_at() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let pod = |n: usize| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p-{n:04}"), "namespace": "shop"},
               "spec": {"nodeName": "n1"}, "status": {"phase": if n == 3999 { "Failed" } else { "Succeeded" }}})
    };
    let map = |n: usize| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": n.to_string(), "namespace": "shop"}});
    for (n, n_groups) in [(3999, 0), (4000, 1)] {
        let world = World((0..n).map(pod).chain((0..4000).map(map)).collect());
        let reader = Reader::new(&world, NOW.parse().expect("a time"));
        let found = runtime.block_on(survey(&reader, "", None)).expect("seen");
        assert_eq!((found.groups.len(), found.unknown.len()), (n_groups, 0), "{:?}", found.unknown);
    }
}

#[test]
fn however_many_look_unwell_what_refuses_writes_comes_first() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/why/refused-writes.txt");
    let mut world = World::parse(fs::read_to_string(file).expect("a text").split(QUESTION).next().expect("a world"));
    world.0.extend((0..50).map(|n| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("web-{n:03}"), "namespace": "shop"},
               "spec": {"nodeName": "n1"}, "status": {"phase": "Failed"}})
    }));
    let reader = Reader::new(&world, NOW.parse().expect("a time"));
    let found = runtime.block_on(survey(&reader, "", None)).expect("seen");
    let first: Vec<&str> = found.groups.iter().map(|it| &*it.subjects[0].subject).take(3).collect();
    assert_eq!(
        first,
        ["validatingwebhookconfiguration/zeal", "validatingwebhookconfiguration/pods", "apiservice/v1.agg.example.com"]
    );
    assert!(found.not_looked_at > 0);
}

#[test]
fn of_the_rest_of_the_cluster_is_told_what_may_be_seen() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/why/refused-writes.txt");
    let mut world = World::parse(fs::read_to_string(file).expect("a text").split(QUESTION).next().expect("a world"));
    world.0.retain(|it| it["kind"] != "Journal");
    for (is_refused, n_notices) in [(false, 1), (true, 0)] {
        if is_refused {
            world.0.push(json!({"kind": "Refused", "resource": "apiservices"}));
        }
        let reader = Reader::new(&world, NOW.parse().expect("a time"));
        let found = runtime.block_on(survey(&reader, "quiet", None)).expect("seen");
        assert_eq!((found.notices.len(), found.unknown.len()), (n_notices, 0), "{:?}", found.notices);
    }
}

#[test]
fn a_journal_is_found_by_the_name_the_server_gives_it() {
    let world = World::parse(
        "apiVersion: corten.dev/v1\nkind: Journal\nmetadata: {name: pods.web, namespace: shop}\ndecisions: []\n",
    );
    assert_eq!(world.of(&JOURNALS).count(), 1);
}

fn world_of(file: &str) -> World {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/why").join(file);
    World::parse(fs::read_to_string(file).expect("a text").split(QUESTION).next().expect("a world"))
}

#[test]
fn a_page_is_as_high_as_its_terminal_and_whole_for_a_program() {
    let now: Time = NOW.parse().expect("a time");
    let world = world_of("survey.txt");
    let reader = Reader::new(&world, now);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let found = runtime.block_on(survey(&reader, "shop", None)).expect("seen");
    let causes = |screen: &str| screen.lines().filter(|it| it.starts_with(['✖', '▸'])).count();
    for (look, is_all) in [
        (PageStyle { height: 13, ..LOOK }, false),
        (PageStyle { width: 60, height: 40, ..LOOK }, false),
        (PageStyle { height: 60, ..LOOK }, true),
        (PageStyle::WHOLE, true),
    ] {
        let screen = render_survey(&found, now, look);
        assert!(screen.lines().count() <= look.height && screen.contains("must act: "), "{screen}");
        assert_eq!(causes(&screen) == found.groups.len(), is_all, "{screen}");
        assert_eq!(!screen.contains("-o json shows all"), is_all, "{screen}");
        assert!(screen.lines().filter(|it| it.contains("corten why")).all(|it| !it.ends_with('…')), "{screen}");
    }
    assert!(!render_survey(&found, now, PageStyle::WHOLE).contains('…'));
}

#[test]
fn of_one_object_a_program_is_told_all_of_it() {
    let now: Time = NOW.parse().expect("a time");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    for (file, kind, key) in [
        ("nodes.txt", "pod", Key::new("shop", "lost")),
        ("nodes.txt", "service", Key::new("shop", "front")),
        ("scheduling.txt", "node", Key::cluster("n2")),
        ("observed.txt", "pod", Key::new("shop", "borg")),
    ] {
        let world = world_of(file);
        let reader = Reader::new(&world, now);
        let kind = corten_kinds::by_name(kind).expect("a kind");
        let explained = runtime.block_on(explain(&reader, kind, &key)).expect("it is there");
        let screen = render(&explained, now, PageStyle::WHOLE);
        assert!(!screen.contains('…'), "{screen}");
        for cause in &explained.account.causes {
            assert!(screen.contains(&cause.wait.message), "{}: {screen}", cause.wait.message);
        }
    }
}

#[test]
fn what_leads_to_another_is_one_cause_with_it_and_the_gravest_is_explained() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let pair = |n: usize| {
        let name = format!("p-{n:02}");
        let (said, missing) = ("it has none", format!("there is no storage class \"c-{n}\""));
        let wait = |reason: &str, message: &str, on: &str| json!({"reason": reason, "message": message, "actor": "Author", "on": on});
        let journal = |kind: &str, wait: Value| {
            json!({"apiVersion": "corten.dev/v1", "kind": "Journal",
                   "metadata": {"name": format!("{kind}.{name}"), "namespace": "shop"},
                   "decisions": [{"by": "test", "waits": [wait]}]})
        };
        [
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"}, "spec": {}, "status": {"phase": "Pending"}}),
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "shop"},
                   "spec": {"storageClassName": format!("c-{n}")}, "status": {"phase": "Pending"}}),
            journal("pods", wait("VolumeBinding", said, &format!("persistentvolumeclaim/{name}"))),
            journal("persistentvolumeclaims", wait("StorageClassNotFound", &missing, "storageclass/none")),
        ]
    };
    let lost = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "z", "namespace": "shop"},
                      "spec": {"volumeName": "pv-z"}, "status": {"phase": "Lost"}});
    let of_lost = json!({"apiVersion": "corten.dev/v1", "kind": "Journal", "metadata": {"name": "persistentvolumeclaims.z", "namespace": "shop"},
                         "decisions": [{"by": "test", "waits": [{"reason": "ClaimLost", "message": "gone", "actor": "Author"}]}]});
    let world = World((0..50).flat_map(pair).chain([lost, of_lost]).collect());
    let reader = Reader::new(&world, NOW.parse().expect("a time"));
    let found = runtime.block_on(survey(&reader, "shop", None)).expect("seen");
    assert_eq!(found.groups[0].subjects[0].subject, "persistentvolumeclaim/z");
    assert_eq!(found.groups[0].whom(99), "whoever wrote persistentvolumeclaim/z");
    assert!(found.groups[1..].iter().all(|it| it.subjects.len() == 2), "{:?}", found.groups);
    // One is lost, thirty-nine Pods have their claims with them, and eleven of both are named.
    assert_eq!((found.groups.len(), found.not_looked_at, found.not_explained.len()), (40, 22, 22));
    assert_eq!(found.not_explained[0].subject, "pod/p-39");
}
