//! The cases of `e2e/pods/`, as they are written. `e2e/pods/README.md` explains the words.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The name of the Pod that a case is about.
pub(super) const POD: &str = "pod";
const IMAGE: &str = "busybox:1.35";

/// One Pod, what it needs, and what must be seen of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::e2e) struct Case {
    #[serde(rename = "case")]
    pub(super) name: String,
    /// Whole manifests, made before the Pod.
    #[serde(default)]
    pub(super) given: Vec<Value>,
    /// A command on the node: where it fails, the case is not for this node.
    pub(super) only: Option<String>,
    /// A command on the node before anything is made.
    pub(super) before: Option<String>,
    /// A Pod's spec, or a Pod without `apiVersion` and `kind`.
    pub(super) pod: Option<Value>,
    /// The API server does not take the Pod, and says this.
    pub(super) refused: Option<Text>,
    #[serde(default)]
    pub(super) expect: Vec<Step>,
    /// What must not be seen at any time.
    #[serde(default)]
    pub(super) never: Vec<Glimpse>,
    /// A command on the node when all is over, and whatever came of it.
    pub(super) after: Option<String>,
    /// The case is wrong on purpose, and the runner must find that out with these words.
    pub(super) wrong: Option<String>,
    #[serde(skip)]
    pub(super) place: String,
}

/// One thing that is done or waited for. What stands in one step holds at one moment.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Step {
    /// Another Pod than `pod`.
    pub(super) of: Option<String>,
    /// Seconds to wait at most.
    pub(super) within: Option<u64>,

    #[serde(flatten)]
    pub(super) glimpse: Glimpse,
    /// Of the Pod's events, each as its reason and the container: `Started main`.
    pub(super) order: Option<Vec<String>>,
    pub(super) log: Option<BTreeMap<String, Text>>,
    pub(super) previous: Option<BTreeMap<String, Text>>,
    /// The Pod is no longer in the API.
    pub(super) gone: Option<bool>,

    /// A command for the shell of a container.
    pub(super) exec: Option<String>,
    /// The container that `exec` is in.
    pub(super) r#in: Option<String>,
    /// A command for the node's shell.
    pub(super) run: Option<String>,
    pub(super) prints: Option<Text>,
    pub(super) exit: Option<i32>,
    pub(super) why: Option<Text>,

    /// A manifest that is made, or takes the place of what is there.
    pub(super) apply: Option<Value>,
    /// A merge patch of the Pod, or of its status.
    pub(super) patch: Option<Value>,
    pub(super) patch_status: Option<Value>,
    pub(super) delete: Option<Delete>,
}

/// What can be seen at a glance: of one version of the Pod, and of its events.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Glimpse {
    pub(super) phase: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
    pub(super) conditions: Option<BTreeMap<String, Value>>,
    pub(super) containers: Option<BTreeMap<String, Value>>,
    /// Any part of the Pod.
    pub(super) pod: Option<Value>,
    pub(super) events: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Delete {
    pub(super) grace: Option<i64>,
}

/// A whole text, in which `…` stands for anything; or some of its lines, in their order.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Text {
    Whole(String),
    Lines(Vec<String>),
}

const STEP_WORDS: &str = "of within phase reason message conditions containers pod events order log previous gone exec in \
                          run prints exit why apply patch patch_status delete";
const GLIMPSE_WORDS: &str = "phase reason message conditions containers pod events";

/// Every case of a file, each with its line.
pub(super) fn read(root: &Path, path: &Path) -> Result<Vec<Case>> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
    parse(&name, &text)
}

fn parse(name: &str, text: &str) -> Result<Vec<Case>> {
    let mut cases: Vec<Case> = Vec::new();
    let mut line = 1;
    for document in text.split("\n---\n") {
        let place = format!("{name}:{}", line + document.lines().take_while(|it| !it.starts_with("case:")).count());
        line += document.lines().count() + 1;
        if document.lines().all(|it| it.is_empty() || it.starts_with('#') || it == "---") {
            continue;
        }
        let mut case = case_of(document).with_context(|| place.clone())?;
        case.place = place;
        if let Some(twin) = cases.iter().find(|it| it.name == case.name) {
            bail!("{}: the name {:?} is taken at {}", case.place, case.name, twin.place);
        }
        cases.push(case);
    }
    Ok(cases)
}

fn case_of(document: &str) -> Result<Case> {
    // As kubectl reads manifests, where 0400 is octal; but `n` is a name.
    let options = serde_saphyr::options! { legacy_octal_numbers: true, strict_booleans: true };
    let value: Value = serde_saphyr::from_str_with_options(document, options)?;
    // Serde cannot refuse unknown words of what is flattened.
    for (key, words) in [("expect", STEP_WORDS), ("never", GLIMPSE_WORDS)] {
        for step in value[key].as_array().into_iter().flatten() {
            let Some(step) = step.as_object() else { bail!("{key}: {step} is no step") };
            let strange = step.keys().find(|it| !words.split_whitespace().any(|word| word == it.as_str()));
            if let Some(strange) = strange {
                bail!("{key}: {strange:?} is none of: {words}");
            }
            if step.is_empty() {
                bail!("{key}: a step says nothing");
            }
        }
    }
    let case: Case = serde_json::from_value(value)?;
    if case.expect.is_empty() && case.refused.is_none() {
        bail!("nothing is expected");
    }
    Ok(case)
}

impl Case {
    /// The Pod as it is sent: named, in its namespace, each container with an image.
    pub(super) fn manifest(&self) -> Option<Value> {
        let mut pod = match self.pod.clone()? {
            it if it.get("spec").is_some() => it,
            spec => json!({ "spec": spec }),
        };
        let whole = pod.as_object_mut()?;
        whole.insert("apiVersion".into(), "v1".into());
        whole.insert("kind".into(), "Pod".into());
        let metadata = whole.entry("metadata").or_insert_with(|| json!({}));
        metadata.as_object_mut()?.entry("name").or_insert(POD.into());
        for list in ["initContainers", "containers"] {
            for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
                let Some(container) = container.as_object_mut() else { continue };
                container.entry("image").or_insert(IMAGE.into());
            }
        }
        Some(pod)
    }

    pub(super) fn pod_name(&self) -> String {
        let manifest = self.manifest().unwrap_or_default();
        manifest["metadata"]["name"].as_str().unwrap_or(POD).to_owned()
    }
}

impl Step {
    /// The step as it stands in the file, for who must find it.
    pub(super) fn show(&self) -> String {
        let mut words = Map::new();
        let mut put = |word: &str, value: Value| {
            if !value.is_null() {
                words.insert(word.to_owned(), value);
            }
        };
        let Glimpse { phase, reason, message, conditions, containers, pod, events } = &self.glimpse;
        put("of", json!(self.of));
        put("phase", json!(phase));
        put("reason", json!(reason));
        put("message", json!(message));
        put("conditions", json!(conditions));
        put("containers", json!(containers));
        put("pod", json!(pod));
        put("events", json!(events));
        put("order", json!(self.order));
        let texts = |it: &BTreeMap<String, Text>| -> Map<String, Value> {
            it.iter().map(|(name, text)| (name.clone(), text.show())).collect()
        };
        put("log", json!(self.log.as_ref().map(texts)));
        put("previous", json!(self.previous.as_ref().map(texts)));
        put("gone", json!(self.gone));
        put("exec", json!(self.exec));
        put("in", json!(self.r#in));
        put("run", json!(self.run));
        put("prints", json!(self.prints.as_ref().map(Text::show)));
        put("exit", json!(self.exit));
        put("why", json!(self.why.as_ref().map(Text::show)));
        put("apply", json!(self.apply));
        put("patch", json!(self.patch));
        put("patch_status", json!(self.patch_status));
        put("delete", json!(self.delete.as_ref().map(|it| it.grace)));
        serde_saphyr::to_string(&Value::Object(words)).unwrap_or_default()
    }
}

impl Text {
    fn show(&self) -> Value {
        match self {
            Self::Whole(text) => json!(text),
            Self::Lines(lines) => json!(lines),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_cases_with_their_lines() {
        let text = "# A topic.\ncase: one\npod: {containers: [{name: a}]}\nexpect:\n- phase: Running\n---\n# why\ncase: two\n\
                    pod: {metadata: {name: b}, spec: {containers: []}}\nrefused: no\n";
        let cases = parse("t.yaml", text).expect("valid");
        let places: Vec<_> = cases.iter().map(|it| (it.place.as_str(), it.name.as_str())).collect();
        assert_eq!(places, [("t.yaml:2", "one"), ("t.yaml:8", "two")]);
        let pod = cases[0].manifest().expect("a Pod");
        assert_eq!((&pod["metadata"]["name"], &pod["spec"]["containers"][0]["image"]), (&json!("pod"), &json!(IMAGE)));
        assert_eq!(cases[1].pod_name(), "b");
    }

    #[test]
    fn what_is_misspelt_is_refused() {
        for wrong in [
            "case: a",
            "case: a\nexpect: []",
            "case: a\nexpect: [{fase: Running}]",
            "case: a\nexpect: [{}]",
            "case: a\nexpect: [{phase: Running}]\nnever: [{log: x}]",
            "case: a\nexpects: [{phase: Running}]",
            "case: a\nrefused: x\n---\ncase: a\nrefused: x",
        ] {
            assert!(parse("t.yaml", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_cases_of_the_project_can_be_read() {
        let root = corten_testbed::root().expect("a project");
        for entry in fs::read_dir(root.join("e2e/pods")).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|it| it == "yaml") {
                read(&root, &path).expect("cases");
            }
        }
    }
}
