//! `cargo xtask fuzz`: builds the fuzzers of `fuzz/` with coverage counters and lets each look for inputs that break what
//! it checks. Needs no other toolchain than the project's: the compiler's own coverage pass feeds libFuzzer.
//!
//! What a run finds interesting is kept in `target/fuzz/corpus`, so the next one goes on from there.

use std::{
    collections::BTreeSet,
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, bail};
use corten_kinds::KINDS;
use corten_schema::TYPES;
use serde_json::Value;

const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";
const INPUT_BYTES_MAX: usize = 8192;
const MEMORY_MB_MAX: usize = 1024;
/// One input may take so long, by the clock on the wall: CI gives fuzzers what others leave of the processor.
const SECONDS_MAX: usize = 20;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The fuzzers to run; without any, all
    targets: Vec<String>,
    /// How long each runs
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Build them all, and run none
    #[arg(long)]
    build_only: bool,
    /// Optimize them little: built in two thirds of the time, for a short look
    #[arg(long)]
    short: bool,
    /// How many run side by side
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).context("finding the workspace")?;
    let all = targets(&root.join("fuzz/targets"))?;
    if let Some(unknown) = args.targets.iter().find(|it| !all.contains(*it)) {
        let names: Vec<_> = all.iter().map(String::as_str).collect();
        bail!("there is no fuzzer {unknown:?}; there are {}", names.join(", "));
    }
    let chosen: Vec<String> = if args.targets.is_empty() { all.into_iter().collect() } else { args.targets.clone() };
    let dir = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from).join("fuzz");
    let programs = build(root, &dir, if args.short { "short" } else { "release" })?;
    if args.build_only {
        return Ok(());
    }
    let dictionary = dir.join("dictionary");
    fs::write(&dictionary, words()).context("writing the dictionary")?;
    let mut failed = Vec::new();
    for group in chosen.chunks(args.jobs.max(1)) {
        let running = group.iter().map(|it| Fuzzer::start(it, &programs, &dir, &dictionary, args.seconds));
        for fuzzer in running.collect::<Result<Vec<_>>>()? {
            failed.extend(fuzzer.finish()?);
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join("\n")) }
}

/// The fuzzers there are: one source file each.
fn targets(dir: &Path) -> Result<BTreeSet<String>> {
    let entries = fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))?;
    let names = entries.filter_map(|it| Some(it.ok()?.path().file_stem()?.to_string_lossy().into_owned()));
    Ok(names.collect())
}

/// Answers the folder of the programs.
fn build(root: &Path, dir: &Path, profile: &str) -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or("cargo".into());
    // A target is named so that the flags are not given to build scripts, which have no counters' home.
    let host = "x86_64-unknown-linux-gnu".replace("x86_64", env::consts::ARCH);
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--profile", profile, "--locked", "--manifest-path"])
        .arg(root.join("fuzz/Cargo.toml"))
        .args(["--target", &host, "--target-dir"])
        .arg(dir)
        .env("RUSTFLAGS", FLAGS)
        .status()
        .context("running cargo")?;
    if !status.success() {
        bail!("the fuzzers cannot be built");
    }
    Ok(dir.join(host).join(profile))
}

/// The names of all types' fields, which mutation alone would not find.
fn words() -> String {
    let names: BTreeSet<&str> = TYPES.iter().flat_map(|it| it.fields.iter().map(|it| it.name)).collect();
    let more =
        ["$patch", "$retainKeys", "$setElementOrder", "$deleteFromPrimitiveList", "delete", "replace", "25%", "1Gi"];
    names.into_iter().chain(more).fold(String::new(), |mut text, it| {
        let _ = writeln!(text, "\"\\\"{it}\\\"\"");
        text
    })
}

struct Fuzzer {
    name: String,
    child: Child,
    log: PathBuf,
    artifacts: PathBuf,
}

impl Fuzzer {
    fn start(name: &str, programs: &Path, dir: &Path, dictionary: &Path, seconds: u32) -> Result<Self> {
        let corpus = dir.join("corpus").join(name);
        let artifacts = dir.join("found").join(name);
        let log = dir.join(format!("{name}.log"));
        fs::create_dir_all(&corpus)?;
        fs::create_dir_all(&artifacts)?;
        plant(name, &corpus)?;
        let child = Command::new(programs.join(name))
            .arg(&corpus)
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-max_len={INPUT_BYTES_MAX}"))
            .arg(format!("-rss_limit_mb={MEMORY_MB_MAX}"))
            .arg(format!("-timeout={SECONDS_MAX}"))
            .arg(format!("-dict={}", dictionary.display()))
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log)?)
            .spawn()
            .with_context(|| format!("starting the fuzzer {name}"))?;
        Ok(Self { name: name.to_owned(), child, log, artifacts })
    }

    /// What it found, where it found anything.
    fn finish(mut self) -> Result<Option<String>> {
        let status = self.child.wait()?;
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let name = &self.name;
        if !status.success() {
            let lines: Vec<_> = log.lines().filter(|it| it.contains("panicked") || it.contains("ERROR")).collect();
            let found = self.artifacts.display();
            return Ok(Some(format!("the fuzzer {name} found an input, kept in {found}: {}", lines.join("; "))));
        }
        let done = log.lines().rev().find(|it| it.starts_with("Done")).unwrap_or("it said nothing");
        println!("{name}: {done}");
        Ok(None)
    }
}

/// Inputs to begin with: of each kind the least that the reader takes.
fn plant(name: &str, corpus: &Path) -> Result<()> {
    match name {
        "dns" => return plant_queries(corpus),
        "depth" => return plant_steps(corpus),
        "schemas" => return plant_schemas(corpus),
        "answers" => return plant_answers(corpus),
        _ => {}
    }
    for (idx, kind) in KINDS.iter().enumerate() {
        let resource = &kind.resource;
        let object = serde_json::json!({
            "apiVersion": resource.api_version(), "kind": resource.kind,
            "metadata": {"name": "a", "namespace": "b", "labels": {"c": "d"}},
            "spec": sample(kind.schema.name(), "spec"), "status": sample(kind.schema.name(), "status"),
        });
        let at = TYPES.binary_search_by(|it| it.name.cmp(kind.schema.name())).ok().context("a kind without a type")?;
        let of = u16::try_from(at)?.to_be_bytes();
        let bytes = match name {
            "decode" => [&of[..], object.to_string().as_bytes()].concat(),
            "patches" => {
                [&of[..], format!("{object}\n{}", serde_json::json!({"spec": object["spec"]})).as_bytes()].concat()
            }
            "admit" => [&[u8::try_from(idx)?][..], format!("{object}\n{object}").as_bytes()].concat(),
            "apply" => [&of[..], format!("{object}\n{object}").as_bytes()].concat(),
            _ => return Ok(()),
        };
        fs::write(corpus.join(format!("seed-{idx}")), bytes)?;
    }
    Ok(())
}

/// A schema with one of everything, and an object of it.
fn plant_schemas(corpus: &Path) -> Result<()> {
    let schema = serde_json::json!({ "type": "object", "properties": { "spec": { "type": "object", "default": {}, "required": ["a"],
        "x-kubernetes-validations": [{ "rule": "self.n > 0 && (!has(oldSelf.n) || self.n >= oldSelf.n)" }],
        "properties": {
            "a": { "type": "string", "pattern": "^[a-z]+$", "maxLength": 9, "enum": ["a", "b"], "nullable": true },
            "n": { "type": "integer", "minimum": 0, "multipleOf": 2, "default": 2 },
            "p": { "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }] },
            "s": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string", "format": "date-time" } },
            "m": { "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {
                "type": "object", "properties": { "k": { "type": "string", "default": "d" } } } },
            "o": { "type": "object", "additionalProperties": { "type": "number" }, "not": { "required": ["z"] } },
            "u": { "type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": true },
        } } } });
    let object = serde_json::json!({ "spec": { "a": "b", "n": 4, "p": "x", "s": ["2026-01-01T00:00:00Z"], "m": [{}, { "k": "e" }],
        "o": { "y": 1.5 }, "u": { "kind": "K", "x": null } } });
    fs::write(corpus.join("seed-schema"), format!("{schema}\n{object}")).context("writing a seed")
}

/// One whole answer of each server that is asked.
fn plant_answers(corpus: &Path) -> Result<()> {
    let kind = serde_json::json!({ "group": "g.example.com", "version": "v1", "kind": "Thing" });
    let admission = serde_json::json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {
        "uid": "u", "allowed": false, "status": { "message": "m", "code": 403, "details": { "causes": [{ "field": "f" }] } },
        "patchType": "JSONPatch", "patch": "W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2EifV0=", "warnings": ["w"], "auditAnnotations": { "a": "b" } } });
    let conversion = serde_json::json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": {
        "uid": "u", "convertedObjects": [{ "a": 1 }], "result": { "status": "Success" } } });
    let list = serde_json::json!({ "kind": "APIResourceList", "groupVersion": "g.example.com/v1", "resources": [
        { "name": "things", "singularName": "thing", "namespaced": true, "kind": "Thing", "verbs": ["get"], "shortNames": ["t"] },
        { "name": "things/scale", "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get"] }] });
    let groups = serde_json::json!({ "kind": "APIGroupDiscoveryList", "items": [{ "metadata": { "name": "g.example.com" }, "versions": [
        { "version": "v1", "resources": [{ "resource": "things", "responseKind": kind, "scope": "Namespaced", "verbs": ["get"],
            "subresources": [{ "subresource": "status", "responseKind": kind, "verbs": ["get"] }] }] }] }] });
    let swagger = serde_json::json!({ "swagger": "2.0", "info": { "title": "t" },
        "paths": { "/apis/g.example.com/v1/things": { "get": { "parameters": [{ "name": "p", "in": "query", "type": "string" }],
            "responses": { "200": { "schema": { "$ref": "#/definitions/Thing" } } } } } },
        "definitions": { "Thing": { "type": "object", "properties": { "of": { "$ref": "#/definitions/Thing" } } } } });
    let keys = serde_json::json!({ "keys": [{ "kty": "RSA", "kid": "k", "n": "AQAB", "e": "AQAB" },
        { "kty": "EC", "crv": "P-256", "x": "AQAB", "y": "AQAB" }] });
    let keys = format!("{keys}\neyJhbGciOiJFUzI1NiIsImtpZCI6ImsifQ.eyJpc3MiOiJpIn0.AQAB");
    let texts = [admission, conversion, list, groups, swagger].map(|it| it.to_string());
    for (name, (whose, text)) in [0, 1, 2, 2, 3, 4].into_iter().zip(texts.into_iter().chain([keys])).enumerate() {
        fs::write(corpus.join(format!("seed-{name}")), [&[whose][..], text.as_bytes()].concat())?;
    }
    Ok(())
}

/// Copies of a value into itself, each of which doubles the depth, and a text that is too deep.
fn plant_steps(corpus: &Path) -> Result<()> {
    const COPY: u8 = 5;
    const APPLY: u8 = 8;
    let copies = (0..8).flat_map(|at| [COPY, 0, 1, 0, 0, 8, (1_u8 << at).saturating_sub(1)]);
    fs::write(corpus.join("seed-copies"), [0, 0].into_iter().chain(copies).collect::<Vec<_>>())?;
    for step in 0..=APPLY + 1 {
        for levels in [3, 177, 250] {
            let seed = [1, 2, step, 2, 8, 1, 0, 2, levels, step, 0, 2, levels];
            fs::write(corpus.join(format!("seed-{step}-{levels}")), seed).context("writing a seed")?;
        }
    }
    Ok(())
}

/// Queries for each kind of name of the fuzzer's zone, and a server's answer.
fn plant_queries(corpus: &Path) -> Result<()> {
    let names = [
        "a.n.svc.cluster.local",
        "h.n.svc.cluster.local",
        "_p._tcp.a.n.svc.cluster.local",
        "_p._tcp.h.n.svc.cluster.local",
        "i.n.svc.cluster.local",
        "o.n.svc.cluster.local",
        "10-244-0-5.n.pod.cluster.local",
        "7.0.96.10.in-addr.arpa",
        "10-244-0-5.h.n.svc.cluster.local",
        "dns-version.cluster.local",
        "cluster.local",
        "b.test",
    ];
    for (idx, (name, qtype)) in names.into_iter().flat_map(|it| [(it, 1), (it, 28), (it, 33), (it, 255)]).enumerate() {
        let mut packet = vec![0, 0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1];
        for label in name.split('.') {
            packet.push(u8::try_from(label.len())?);
            packet.extend_from_slice(label.as_bytes());
        }
        packet.extend_from_slice(&[0, 0, qtype, 0, 1, 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
        fs::write(corpus.join(format!("seed-{idx}")), packet)?;
    }
    let answer = b"\x01\x01\x80\0\x02\0\0\0\0\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x02\xc0\x0c\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\x01\x02\x03\x04";
    fs::write(corpus.join("seed-answer"), answer).context("writing a seed")
}

/// A value of a field of a type, two levels deep.
fn sample(schema: &str, field: &str) -> Value {
    let of = corten_schema::find(schema).and_then(|it| it.fields.iter().find(|it| it.name == field));
    of.map_or(Value::Null, |it| shape(&it.shape, 4))
}

fn shape(of: &corten_schema::Shape, depth: usize) -> Value {
    use corten_schema::Shape;
    match of {
        _ if depth == 0 => Value::Null,
        Shape::Object(of) => {
            let fields = of.fields.iter().map(|it| (it.name.to_owned(), shape(&it.shape, depth - 1)));
            Value::Object(fields.filter(|it| !it.1.is_null()).collect())
        }
        Shape::List(of) => Value::Array(vec![shape(of, depth)]),
        _ => scalar(of),
    }
}

fn scalar(of: &corten_schema::Shape) -> Value {
    use corten_schema::Shape;
    match of {
        Shape::Int32 | Shape::Int64 | Shape::Number | Shape::IntOrString => 1.into(),
        Shape::Boolean => true.into(),
        Shape::Time | Shape::MicroTime => "2026-01-02T03:04:05Z".into(),
        Shape::Quantity => "1Gi".into(),
        Shape::Map(_) => serde_json::json!({"a": "b"}),
        _ => "a".into(),
    }
}
