//! Reads request bodies, within bounds, and says what is wrong with them as Kubernetes says it.

use corten_kinds::{CustomSchema, Kind, Schema};
use corten_meta::{Resource, Status, Violation, depth, shortened};
use corten_routes::Query;
use corten_schema::go_kind;
use http::{HeaderMap, header::CONTENT_TYPE};
use serde_json::Value;

use super::{accept::header, read_yaml};

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
    unnamed: Option<String>,
}

/// Fields that a document gives twice.
#[derive(Default)]
pub(super) struct Duplicates {
    /// `duplicate field "spec.replicas"`, a sentence each.
    sentences: Vec<String>,
    /// The JSON that has them. Empty where nothing is there twice, and where it is no JSON of the object, but a patch.
    text: Vec<u8>,
    /// `line 4: key "a" already set in map`, where the document was YAML.
    lines: Vec<String>,
}

impl Duplicates {
    /// What is wrong with the document's fields, in document order; what is wrong with a patch comes before its outcome.
    /// A strict reader refuses what YAML gives twice as one error, and warns of each (`parseYAMLWarnings`).
    fn with(mut self, strictness: Strictness, unknown: Vec<String>) -> Vec<String> {
        let mut of_yaml = std::mem::take(&mut self.lines);
        if strictness == Strictness::Strict && !of_yaml.is_empty() {
            of_yaml = vec![format!("yaml: unmarshal errors:\n  {}", of_yaml.join("\n  "))];
        }
        of_yaml.extend(self.of_json(unknown));
        of_yaml
    }

    fn of_json(mut self, unknown: Vec<String>) -> Vec<String> {
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
    Ok(Document { unnamed: unnamed(&value, &[]), value, duplicates: Duplicates::default() })
}

fn json(body: &[u8], wanted: &str) -> Result<Document, Status> {
    let (value, sentences) = corten_schema::read(body).map_err(|error| {
        let reason = if error.is_eof() { "unexpected end of JSON input".to_owned() } else { depth::reason(&error) };
        unrecognized(wanted, &format!("couldn't get version/kind; json parse error: {reason}"), body)
    })?;
    if !value.is_object() {
        let reason = format!("json: cannot unmarshal {} into Go value of type {wanted}", go_kind(&value));
        return Err(unrecognized(wanted, &format!("couldn't get version/kind; json parse error: {reason}"), body));
    }
    let text = if sentences.is_empty() { Vec::new() } else { body.to_vec() };
    let duplicates = Duplicates { sentences, text, ..Duplicates::default() };
    Ok(Document { unnamed: unnamed(&value, body), value, duplicates })
}

fn yaml(body: &[u8], wanted: &str) -> Result<Document, Status> {
    let (value, lines) = read_yaml::read(body)
        .map_err(|it| unrecognized(wanted, &format!("error converting YAML to JSON: yaml: {it}"), body))?;
    if !value.is_object() {
        let reason = format!("json: cannot unmarshal {} into Go value of type {wanted}", go_kind(&value));
        return Err(unrecognized(wanted, &format!("couldn't get version/kind; json parse error: {reason}"), body));
    }
    Ok(Document { unnamed: unnamed(&value, body), value, duplicates: Duplicates { lines, ..Duplicates::default() } })
}

/// The body, where its object does not say its kind: whoever refuses it quotes it.
fn unnamed(value: &Value, body: &[u8]) -> Option<String> {
    let says = value["kind"].as_str().is_some_and(|it| !it.is_empty());
    (!says).then(|| shortened(&String::from_utf8_lossy(body)).into_owned())
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
        match &kind.schema {
            Schema::Table(_) => identify(&mut self.value, kind)?,
            Schema::Structural(_) => self.identify_custom(strictness, kind)?,
        }
        let warnings = of_kind(strictness, kind, &mut self.value, self.duplicates)?;
        Ok((self.value, warnings))
    }

    /// A custom resource says itself what it is: unlike a built-in kind's, its decoder has no defaults for that
    /// (`Serializer.Decode` of unstructured objects, `customResourceValidator.ValidateTypeMeta`).
    fn identify_custom(&mut self, strictness: Strictness, kind: &Kind) -> Result<(), Status> {
        let Resource { kind: name, version, .. } = &kind.resource;
        let (api_version, found) = (said(&self.value, "apiVersion", name)?, said(&self.value, "kind", name)?);
        if found.is_empty() {
            let body = self.unnamed.as_deref().unwrap_or_default();
            let missing = format!("Object 'Kind' is missing in '{body}'");
            return Err(match strictness {
                Strictness::Ignore => Status::bad_request(format!(
                    "{name} in version {version:?} cannot be handled as a {name}: {missing}"
                )),
                Strictness::Strict | Strictness::Warn => unrecognized(name, &missing, body.as_bytes()),
            });
        }
        let expected = kind.resource.api_version();
        if api_version != expected {
            return Err(Status::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({expected})"
            )));
        }
        if found == *name {
            return Ok(());
        }
        let object = self.value["metadata"]["name"].as_str().unwrap_or_default();
        let violation = Violation::invalid("kind", format!("{found:?}"), &format!("must be {name}"));
        Err(Status::invalid(&Resource { kind: found.into(), ..kind.resource.clone() }, object, &[violation]))
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

/// A text at the top of the object, empty where there is none.
fn said(value: &Value, field: &str, wanted: &str) -> Result<String, Status> {
    match &value[field] {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        other => {
            let reason =
                format!("json: cannot unmarshal {} into Go struct field .{field} of type string", go_kind(other));
            let reason = format!("couldn't get version/kind; json parse error: {reason}");
            Err(unrecognized(wanted, &reason, value.to_string().as_bytes()))
        }
    }
}

/// The version the body is in, without its group.
fn identified(value: &mut Value, kind: &str, versions: &[&str]) -> Result<String, Status> {
    let (api_version, found) = (said(value, "apiVersion", kind)?, said(value, "kind", kind)?);
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
    of_kind(strictness, kind, value, Duplicates { sentences: duplicates, ..Duplicates::default() })
}

fn of_kind(
    strictness: Strictness,
    kind: &Kind,
    value: &mut Value,
    duplicates: Duplicates,
) -> Result<Vec<String>, Status> {
    match &kind.schema {
        Schema::Table(schema) => {
            checked(strictness, value, &kind.resource.kind, &kind.resource.version, schema, duplicates)
        }
        Schema::Structural(schema) => custom(strictness, value, kind, schema, duplicates),
    }
}

/// The sentences that a strict reader says of fields that a type does not know.
///
/// # Errors
/// What is of a wrong type.
pub fn unknown_fields(schema: &Schema, value: &Value) -> Result<Vec<String>, String> {
    match schema {
        Schema::Table(name) => {
            let findings = corten_schema::check(name, value);
            match findings.wrong_types.first() {
                Some(wrong) => Err(wrong.message.clone()),
                None => Ok(findings.unknown_fields),
            }
        }
        Schema::Structural(schema) => {
            let mut pruned = value.clone();
            of_custom(schema, &mut pruned)
        }
    }
}

/// Takes out what a type does not know.
pub fn prune(schema: &Schema, value: &mut Value) {
    match schema {
        Schema::Table(name) => corten_schema::prune(name, value),
        // What is of a wrong type stays as it is, and was refused before.
        Schema::Structural(schema) => drop(of_custom(schema, value)),
    }
}

/// What a custom resource's own schema knows; its metadata is that of every object. Whether the types are right is asked with
/// all other rules.
fn custom(
    strictness: Strictness,
    value: &mut Value,
    kind: &Kind,
    schema: &CustomSchema,
    duplicates: Duplicates,
) -> Result<Vec<String>, Status> {
    let unknown = of_custom(schema, value);
    let (name, version) = (&kind.resource.kind, &kind.resource.version);
    // As `transformDecodeError` says it.
    let handled =
        |it: String| Status::bad_request(format!("{name} in version {version:?} cannot be handled as a {name}: {it}"));
    let sentences = duplicates.with(strictness, unknown.map_err(handled)?);
    if strictness == Strictness::Strict && !sentences.is_empty() {
        return Err(handled(format!("strict decoding error: {}", sentences.join(", "))));
    }
    Ok(if strictness == Strictness::Warn { sentences } else { Vec::new() })
}

/// Prunes; what it took out, a sentence each.
fn of_custom(schema: &CustomSchema, value: &mut Value) -> Result<Vec<String>, String> {
    const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    let mut sentences = Vec::new();
    if let Some(metadata) = value.get_mut("metadata") {
        let findings = corten_schema::check(OBJECT_META, metadata);
        if let Some(wrong) = findings.wrong_types.first() {
            return Err(wrong.message.replacen(
                "Go struct field ObjectMeta.",
                "Go struct field ObjectMeta.metadata.",
                1,
            ));
        }
        sentences.extend(findings.unknown_fields.iter().map(|it| of_metadata(it, "metadata")));
        corten_schema::prune(OBJECT_META, metadata);
    }
    let mut within = Vec::new();
    schema.structural.try_embedded_resources(value, &mut |path, resource| {
        let Some(metadata) = resource.get_mut("metadata") else { return Ok(()) };
        let findings = corten_schema::check(OBJECT_META, metadata);
        if let Some(wrong) = findings.wrong_types.first() {
            return Err(wrong.message.clone());
        }
        let room = UNKNOWN_WITHIN_MAX.saturating_sub(within.len());
        let path = format!("{path}.metadata");
        within.extend(findings.unknown_fields.iter().take(room).map(|it| of_metadata(it, &path)));
        corten_schema::prune(OBJECT_META, metadata);
        Ok(())
    })?;
    let mut unknown = schema.structural.prune(value);
    unknown.sort();
    sentences.extend(unknown.iter().map(|it| format!("unknown field {it:?}")));
    // As `schemaCoercingDecoder.Decode`: those of resources within come last (`schemaobjectmeta.CoerceWithOptions`).
    within.sort();
    sentences.extend(within);
    Ok(sentences)
}

/// As many unknown fields of resources within a custom resource are told.
const UNKNOWN_WITHIN_MAX: usize = 100;

/// A sentence about metadata, with the whole path.
fn of_metadata(sentence: &str, path: &str) -> String {
    let start = format!("unknown field \"{}.", shortened(path));
    sentence.replacen("unknown field \"", &start, 1)
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
    let sentences = duplicates.with(strictness, findings.unknown_fields);
    if strictness == Strictness::Strict && !sentences.is_empty() {
        return Err(handled(&format!("strict decoding error: {}", sentences.join(", "))));
    }
    corten_schema::prune(schema, value);
    Ok(if strictness == Strictness::Warn { sentences } else { Vec::new() })
}
