//! Objects, whole or broken in one place, with what kube-apiserver 1.36 answers to them, where a checkout has them beside it.
//!
//! `testdata/answers/` lists the cases that are answered otherwise here, with how they differ and why that stays. The lists
//! only shrink: a case that is not on one fails, so does one that is on it and no longer differs, and one without a reason.
//! `UPDATE=1` rewrites them; the reasons that no test can tell ([`reasons`]) are written by hand and kept.
//! `ANSWERS=file` writes what this server answers into a file, as a line of JSON for each case that differs.

mod reasons;

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use corten_access::Identity;
use corten_kinds::{Kind, by_kind};
use corten_meta::Key;
use http_body_util::BodyExt;
use serde::Deserialize;
use serde_json::{Value, json};

use super::server;
use crate::Server;

const NAMESPACE: &str = "d";

/// How an answer differs, the gravest first.
const CODE: &str = "code";
const CAUSES: &str = "causes";
const OBJECT: &str = "object";
const WORDS: &str = "words";

#[derive(Deserialize)]
struct Case {
    kind: String,
    path: String,
    input: Value,
    answer: Value,
    /// Of what is changed.
    #[serde(default)]
    name: String,
    /// What stands there before its kind's changes.
    whole: Option<Value>,
}

impl Case {
    fn row(&self) -> &'static Kind {
        let (version, kind) = self.kind.split_once(' ').expect("a version and a kind");
        by_kind(version, kind).unwrap_or_else(|| panic!("{} is not served", self.kind))
    }

    fn collection(&self) -> String {
        let resource = &self.row().resource;
        resource.collection_path(if resource.namespaced { NAMESPACE } else { "" })
    }

    fn object(&self) -> String {
        let resource = &self.row().resource;
        resource.path(&Key::new(if resource.namespaced { NAMESPACE } else { "" }, &self.name))
    }
}

#[tokio::test(start_paused = true)]
async fn creates_are_answered_as_upstream_answers_them() {
    let Some(cases) = cases("answers") else { return };
    let server = prepared().await;
    let mut differing = Differing::default();
    for case in &cases {
        let path = format!("{}?dryRun=All&fieldValidation=Ignore", case.collection());
        differing.compare(case, ask(&server, "POST", &path, &case.input).await);
    }
    server.stop().await;
    differing.settle("create", cases.len());
}

#[tokio::test(start_paused = true)]
async fn changes_are_answered_as_upstream_answers_them() {
    let Some(cases) = cases("answers-update") else { return };
    let server = prepared().await;
    let mut differing = Differing::default();
    for case in &cases {
        if let Some(whole) = &case.whole {
            let made = ask(&server, "POST", &case.collection(), whole).await;
            assert!(made["code"] == 201, "{} cannot be made: {made}", case.kind);
        }
        let path = format!("{}?dryRun=All&fieldValidation=Ignore", case.object());
        differing.compare(case, ask(&server, "PUT", &path, &case.input).await);
    }
    server.stop().await;
    differing.settle("update", cases.len());
}

/// `None`, said aloud, where there are none.
fn cases(name: &str) -> Option<Vec<Case>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../../shared/golden/{name}.jsonl.gz"));
    let Ok(bytes) = fs::read(&file) else {
        eprintln!("skipped: there are no golden answers");
        return None;
    };
    let mut text = String::new();
    flate2::read::GzDecoder::new(&*bytes).read_to_string(&mut text).expect("gzip");
    Some(text.lines().map(|it| serde_json::from_str(it).expect("a case")).collect())
}

async fn prepared() -> Server {
    let server = server::started().await;
    for (path, name) in [("/api/v1/namespaces", NAMESPACE), ("/api/v1/namespaces/d/serviceaccounts", "default")] {
        let made = ask(&server, "POST", path, &json!({ "metadata": { "name": name } })).await;
        assert!(made["code"] == 201, "{path}: {made}");
    }
    server
}

/// The answer in the form of the golden ones.
async fn ask(server: &Server, method: &str, path: &str, body: &Value) -> Value {
    let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
    let request = http::Request::builder().method(method).uri(path).header("Content-Type", "application/json");
    let response = server.call(who, request.body(Bytes::from(body.to_string())).expect("a request")).await;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.expect("a whole body").to_bytes();
    let value: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    if code < 300 {
        return json!({ "code": code, "object": value });
    }
    let causes = value["details"]["causes"].as_array().into_iter().flatten();
    let causes: Vec<_> = causes.map(|it| json!([it["reason"], it["field"], it["message"]])).collect();
    json!({ "code": code, "reason": value["reason"], "causes": causes, "message": value["message"] })
}

/// How the answers differ; nothing where they do not.
fn difference(wanted: &Value, got: &Value) -> Option<&'static str> {
    let places = |it: &Value| -> Vec<(Value, Value)> {
        it["causes"].as_array().into_iter().flatten().map(|it| (it[0].clone(), it[1].clone())).collect()
    };
    if (&wanted["code"], &wanted["reason"]) != (&got["code"], &got["reason"]) {
        return Some(CODE);
    }
    if places(wanted) != places(got) {
        return Some(CAUSES);
    }
    if (&wanted["causes"], &wanted["message"]) != (&got["causes"], &got["message"]) {
        return Some(WORDS);
    }
    let comparable = |it: &Value| comparable(&it["object"], got["code"] == 200);
    (comparable(wanted) != comparable(got)).then_some(OBJECT)
}

/// Fields that the golden objects lack wherever they stand: they differ each time, or do for Services.
const LEFT_OUT: &[&str] = &[
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "clusterIP",
    "clusterIPs",
    "ports",
    "healthCheckNodePort",
    "lastPhaseTransitionTime",
];

/// An object as the golden ones are written: without [`LEFT_OUT`] and without fields that hold nothing.
fn comparable(object: &Value, is_change: bool) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut().filter(|_| is_change) {
        fields.shift_remove("status");
    }
    if object["kind"] == "CertificateSigningRequest" {
        // Whose certificate the author has shown.
        object["spec"].as_object_mut().and_then(|it| it.shift_remove("extra"));
    }
    strip(&mut object);
    object
}

fn strip(value: &mut Value) {
    match value {
        Value::Array(items) => {
            // The volume of a Pod's own token is left out, too; its mounts are not.
            items.retain(|it| !(is_token(&it["name"]) && it["projected"].is_object()));
            items.iter_mut().for_each(strip);
        }
        Value::Object(fields) => fields.retain(|name, value| {
            strip(value);
            let is_empty = match &*value {
                Value::Null => true,
                Value::Object(fields) => fields.is_empty(),
                Value::Array(items) => items.is_empty(),
                _ => false,
            };
            !is_empty && !LEFT_OUT.contains(&&**name)
        }),
        Value::String(text) if text.starts_with("kube-api-access-") => TOKEN_X.clone_into(text),
        _ => {}
    }
}

const TOKEN_X: &str = "kube-api-access-X";

fn is_token(name: &Value) -> bool {
    name.as_str().is_some_and(|it| it.starts_with("kube-api-access-"))
}

/// The cases that were answered otherwise, each with how and why.
#[derive(Default)]
struct Differing {
    found: BTreeMap<String, (&'static str, Option<&'static str>)>,
    answers: String,
}

impl Differing {
    fn compare(&mut self, case: &Case, got: Value) {
        let Some(how) = difference(&case.answer, &got) else { return };
        let why = reasons::reason(&case.answer, &got);
        self.found.insert(format!("{} | {}", case.kind, case.path), (how, why));
        let line = json!({ "kind": case.kind, "path": case.path, "how": how, "why": why, "got": got });
        writeln!(self.answers, "{line}").expect("memory is there");
    }

    /// Compares what was found with the list.
    fn settle(self, verb: &str, played: usize) {
        if let Some(file) = std::env::var_os("ANSWERS") {
            let file = PathBuf::from(file).with_extension(format!("{verb}.jsonl"));
            fs::write(file, &self.answers).expect("the file can be written");
        }
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testdata/answers/differs-{verb}.txt"));
        let text = fs::read_to_string(&file).unwrap_or_default();
        let known: BTreeMap<&str, (&str, &str)> = entries(&text).collect();
        let found = self.found.iter().map(|(case, (how, why))| {
            let by_hand = known.get(&**case).map_or(UNKNOWN, |it| it.1);
            (&**case, (*how, why.unwrap_or(by_hand)))
        });
        let found: BTreeMap<&str, (&str, &str)> = found.collect();
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&file, list(&text, &found)).expect("the list can be written");
            return;
        }
        let mut failures = String::new();
        for (case, (how, why)) in &found {
            if known.get(case) != Some(&(how, why)) {
                writeln!(failures, "differs, and is not on the list: {how} | {why} | {case}").expect("memory is there");
            } else if !text.contains(&format!("\n# - {why}: ")) {
                writeln!(failures, "differs, and the list does not explain why: {how} | {why} | {case}")
                    .expect("memory is there");
            }
        }
        for (case, (how, _)) in known.iter().filter(|it| !found.contains_key(*it.0)) {
            writeln!(failures, "no longer differs, and is on the list: {how} | {case}").expect("memory is there");
        }
        assert!(failures.is_empty(), "{} of {played} differ\n{failures}", found.len());
    }
}

/// Of a case that nobody has looked at: the list explains no such reason.
const UNKNOWN: &str = "?";

/// The list with comments kept where they stand.
fn list(known: &str, found: &BTreeMap<&str, (&str, &str)>) -> String {
    let mut text: String = known.lines().filter(|it| it.starts_with('#')).map(|it| format!("{it}\n")).collect();
    for (case, (how, why)) in found {
        writeln!(text, "{how} | {why} | {case}").expect("memory is there");
    }
    text
}

/// A case, how it differs and why, of each line that is no comment.
fn entries(list: &str) -> impl Iterator<Item = (&str, (&str, &str))> {
    let lines = list.lines().filter(|it| !it.is_empty() && !it.starts_with('#'));
    lines.map(|it| {
        let (how, rest) = it.split_once(" | ").expect("how, then why");
        let (why, case) = rest.split_once(" | ").expect("why, then the case");
        (case, (how, why))
    })
}
