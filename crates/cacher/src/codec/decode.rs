//! Reads request bodies, within bounds, and says what is wrong with them as Kubernetes says it.

use corten_kinds::Kind;
use corten_meta::{
    Status,
    depth::{self, LEVELS_MAX},
};
use corten_routes::Query;
use http::{HeaderMap, header::CONTENT_TYPE};
use serde_json::Value;

use super::accept::header;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const SUPPORTED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// `fieldValidation`: what becomes of unknown and duplicate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    Strict,
    Warn,
    Ignore,
}

impl Strictness {
    /// Of a request whose verb is `verb`.
    ///
    /// # Errors
    /// 422 for a word that is none of the three.
    pub fn of(query: &Query, verb: &str) -> Result<Self, Status> {
        match query.get("fieldValidation") {
            None | Some("Warn") => Ok(Self::Warn),
            Some("Strict") => Ok(Self::Strict),
            Some("Ignore") => Ok(Self::Ignore),
            Some(other) => Err(Status::failure(
                422,
                "Invalid",
                format!(
                    "{}.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: {other:?}: supported values: \"Ignore\", \"Strict\", \"Warn\"",
                    options_kind(verb)
                ),
            )),
        }
    }
}

fn options_kind(verb: &str) -> &'static str {
    match verb {
        "create" => "CreateOptions",
        "patch" => "PatchOptions",
        _ => "UpdateOptions",
    }
}

/// A body that was read, before anything is known of it.
pub struct Document {
    pub value: Value,
    duplicates: Duplicates,
}

/// Fields that a document gives twice.
#[derive(Default)]
pub(super) struct Duplicates {
    /// `duplicate field "spec.replicas"`, a sentence each.
    sentences: Vec<String>,
    /// The JSON that has them. Empty where nothing is there twice, and where it is no JSON of the object, but a patch.
    text: Vec<u8>,
}

impl Duplicates {
    /// What is wrong with the document's fields, in document order; what is wrong with a patch comes before its outcome.
    fn with(mut self, unknown: Vec<String>) -> Vec<String> {
        if unknown.is_empty() || self.text.is_empty() {
            self.sentences.extend(unknown);
            return self.sentences;
        }
        corten_schema::in_document_order(&self.text, &unknown)
    }
}

/// The body as a DOM. `wanted` is the kind that messages name.
///
/// # Errors
/// 415 for a media type that is not read, 400 for a body that cannot be.
pub fn document(headers: &HeaderMap, body: &[u8], wanted: &str) -> Result<Document, Status> {
    let media_type = header(headers, &CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
    match media_type {
        "" | "application/json" => json(body, wanted),
        "application/yaml" | "text/yaml" | "application/x-yaml" => yaml(body, wanted),
        PROTOBUF => protobuf(body, wanted),
        other => Err(Status::unsupported_media_type(SUPPORTED, other)),
    }
}

fn protobuf(body: &[u8], wanted: &str) -> Result<Document, Status> {
    let value = corten_schema::proto::decode(body)
        .map_err(|error| unrecognized(wanted, &format!("couldn't get version/kind; protobuf error: {error}"), body))?;
    Ok(Document { value, duplicates: Duplicates::default() })
}

fn json(body: &[u8], wanted: &str) -> Result<Document, Status> {
    let (value, sentences) = corten_schema::read(body).map_err(|error| {
        let reason = if error.is_eof() { "unexpected end of JSON input".to_owned() } else { depth::reason(&error) };
        unrecognized(wanted, &format!("couldn't get version/kind; json parse error: {reason}"), body)
    })?;
    if !value.is_object() {
        let reason = format!("json: cannot unmarshal {} into Go value of type {wanted}", name_of(&value));
        return Err(unrecognized(wanted, &format!("couldn't get version/kind; json parse error: {reason}"), body));
    }
    let text = if sentences.is_empty() { Vec::new() } else { body.to_vec() };
    Ok(Document { value, duplicates: Duplicates { sentences, text } })
}

/// Within bounds that alias bombs run into. What an alias stands for counts where it stands.
pub(super) fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: LEVELS_MAX,
            max_nodes: 250_000,
            max_events: 500_000,
            max_aliases: 1_000,
            max_documents: 1,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 100_000 },
    }
}

fn yaml(body: &[u8], wanted: &str) -> Result<Document, Status> {
    let value: Value = serde_saphyr::from_slice_with_options(body, yaml_options()).map_err(|error| {
        let reason = error.to_string();
        let first = reason.lines().next().unwrap_or_default();
        unrecognized(wanted, &format!("error converting YAML to JSON: yaml: {first}"), body)
    })?;
    if !value.is_object() {
        let reason = format!("json: cannot unmarshal {} into Go value of type {wanted}", name_of(&value));
        return Err(unrecognized(wanted, &format!("couldn't get version/kind; json parse error: {reason}"), body));
    }
    Ok(Document { value, duplicates: Duplicates::default() })
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn unrecognized(wanted: &str, reason: &str, body: &[u8]) -> Status {
    let summary = summary(body);
    Status::bad_request(format!("the object provided is unrecognized (must be of type {wanted}): {reason} ({summary})"))
}

/// The start of a body as messages quote it: text where it looks like JSON, else hexadecimal.
fn summary(body: &[u8]) -> String {
    const MAX: usize = 30;
    let (start, dots) = if body.len() > MAX { (&body[..MAX], " ...") } else { (body, "") };
    match body.first() {
        None => "<empty>".into(),
        Some(b'{') => format!("{}{dots}", String::from_utf8_lossy(start)),
        Some(_) => format!("{}{dots}", start.iter().map(|it| format!("{it:02x}")).collect::<String>()),
    }
}

impl Document {
    /// The document as an object of `kind`: right kind and version, right types, unknown fields dealt with as asked, pruned;
    /// and what there is to warn of.
    ///
    /// # Errors
    /// 400.
    pub fn object(mut self, strictness: Strictness, kind: &Kind) -> Result<(Value, Vec<String>), Status> {
        identify(&mut self.value, kind)?;
        let resource = &kind.resource;
        let warnings =
            checked(strictness, &mut self.value, &resource.kind, &resource.version, kind.schema, self.duplicates)?;
        Ok((self.value, warnings))
    }

    /// As [`Document::object`], for a body of another kind than the path's (a Scale, an Eviction), in one of its versions, the
    /// first of which it gets where it says none.
    ///
    /// # Errors
    /// 400.
    pub fn part(
        mut self,
        strictness: Strictness,
        name: &str,
        versions: &[&str],
        schema: &str,
    ) -> Result<(Value, Vec<String>), Status> {
        let version = identified(&mut self.value, name, versions)?;
        let warnings = checked(strictness, &mut self.value, name, &version, schema, self.duplicates)?;
        Ok((self.value, warnings))
    }
}

/// Kind and version are what the path says; absent ones are filled in.
fn identify(value: &mut Value, kind: &Kind) -> Result<(), Status> {
    identified(value, &kind.resource.kind, &[&kind.resource.api_version()]).map(drop)
}

/// The version the body is in, without its group.
fn identified(value: &mut Value, kind: &str, versions: &[&str]) -> Result<String, Status> {
    let text = |name: &str| match &value[name] {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        other => Err(Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go struct field .{name} of type string ({})",
            name_of(other),
            summary(value.to_string().as_bytes()),
        ))),
    };
    let (api_version, found) = (text("apiVersion")?, text("kind")?);
    let expected = versions[0];
    if !api_version.is_empty() && !versions.contains(&&*api_version) {
        return Err(Status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    let (group, version) = expected.rsplit_once('/').unwrap_or(("", expected));
    if !found.is_empty() && found != kind {
        let group = group.split('.').next().filter(|it| !it.is_empty()).unwrap_or("core");
        return Err(Status::bad_request(format!(
            "{found} in version {version:?} cannot be handled as a {kind}: converting (v1.{found}) to ({group}.{kind}): unknown conversion",
        )));
    }
    let api_version = if api_version.is_empty() { expected.to_owned() } else { api_version };
    let version = api_version.rsplit('/').next().unwrap_or_default().to_owned();
    value["kind"] = kind.into();
    value["apiVersion"] = api_version.into();
    Ok(version)
}

/// Checks types and unknown fields against the schema, then prunes. Says what there is to warn of.
///
/// # Errors
/// 400.
pub fn validated(
    strictness: Strictness,
    kind: &Kind,
    value: &mut Value,
    duplicates: Vec<String>,
) -> Result<Vec<String>, Status> {
    let duplicates = Duplicates { sentences: duplicates, text: Vec::new() };
    checked(strictness, value, &kind.resource.kind, &kind.resource.version, kind.schema, duplicates)
}

fn checked(
    strictness: Strictness,
    value: &mut Value,
    kind: &str,
    version: &str,
    schema: &str,
    duplicates: Duplicates,
) -> Result<Vec<String>, Status> {
    let handled = |reason: &str| {
        Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {reason}"))
    };
    let findings = corten_schema::check(schema, value);
    if let Some(wrong) = findings.wrong_types.first() {
        return Err(handled(&wrong.message));
    }
    let sentences = duplicates.with(findings.unknown_fields);
    if strictness == Strictness::Strict && !sentences.is_empty() {
        return Err(handled(&format!("strict decoding error: {}", sentences.join(", "))));
    }
    corten_schema::prune(schema, value);
    Ok(if strictness == Strictness::Warn { sentences } else { Vec::new() })
}
