//! Plays one case in a namespace of its own. A step waits on what the watches bring, never on a clock; its patience is a
//! deadline only.

use std::{collections::BTreeMap, process::Stdio, time::Duration};

use bytes::Bytes;
use corten_client::{Client, DeleteParams, Error, ListParams, PatchType};
use corten_meta::{Key, Resource};
use http_body_util::BodyExt;
use hyper::Request;
use serde_json::{Value, json};
use tokio::{
    process::Command,
    time::{Instant, timeout_at},
};

use super::{
    case::{Case, Step, Text},
    expect::{self, Verdict},
    world::{PODS, World},
};
use crate::e2e::{Shell, cluster::Cluster};

const PATIENCE: Duration = Duration::from_secs(60);
const NAMESPACES: Resource = Resource::cluster("", "v1", "Namespace", "namespaces");

/// What every case is played on.
pub(super) struct Stage {
    pub(super) client: Client,
    pub(super) world: World,
    pub(super) cluster: Cluster,
}

/// One case under way.
pub(super) struct Play<'a> {
    stage: &'a Stage,
    case: &'a Case,
    pub(super) namespace: String,
    /// For each Pod, the version at which the last step held: the next one looks from there on.
    places: BTreeMap<String, usize>,
}

/// Where a case failed, and why.
pub(super) struct Failure {
    pub(super) step: String,
    pub(super) why: String,
    /// The Pod that the step was about.
    pub(super) pod: Key,
}

impl<'a> Play<'a> {
    pub(super) fn new(stage: &'a Stage, case: &'a Case, namespace: String) -> Self {
        Self { stage, case, namespace, places: BTreeMap::new() }
    }

    pub(super) async fn run(&mut self) -> Result<(), Failure> {
        let pod = self.key(&self.case.pod_name());
        let failed = |step: &str, why: String| Failure { step: step.into(), why, pod: pod.clone() };
        self.prepare().await.map_err(|it| failed("given", it))?;
        if let Some(manifest) = self.case.manifest() {
            let made = self.create(&manifest).await;
            match (made, &self.case.refused) {
                (Ok(()), None) => {}
                (Ok(()), Some(_)) => return Err(failed("refused", "the API server took the Pod".into())),
                (Err(why), None) => return Err(failed("pod", why)),
                (Err(why), Some(text)) => return expect::text(text, &why).map_err(|it| failed("refused", it)),
            }
        }
        for step in &self.case.expect {
            let pod = self.key(step.of.as_deref().unwrap_or(&pod.name));
            self.step(step, &pod).await.map_err(|why| Failure { step: step.show(), why, pod: pod.clone() })?;
        }
        self.never(&pod).map_err(|it| failed("never", it))
    }

    /// Is the case for a node like this one?
    pub(super) async fn is_for_here(&self) -> Result<bool, String> {
        let Some(command) = &self.case.only else { return Ok(true) };
        let (exit, _) = self.on_node(command, &Key::default(), self.deadline(PATIENCE)).await?;
        Ok(exit == 0)
    }

    pub(super) fn failure(&self, step: &str, why: String) -> Failure {
        Failure { step: step.into(), why, pod: self.key(&self.case.pod_name()) }
    }

    /// Takes the namespace away, and waits until its Pods are gone: one that stays is a failure, too.
    pub(super) async fn clean(&self) -> Verdict {
        let client = &self.stage.client;
        for manifest in &self.case.given {
            if let Ok((resource, key)) = self.place_of(manifest)
                && !resource.namespaced
            {
                let _ = client.delete(&resource, &key, &DeleteParams::default()).await;
            }
        }
        let which = ListParams { namespace: self.namespace.clone(), ..ListParams::default() };
        let how = DeleteParams { grace_seconds: Some(1), ..DeleteParams::default() };
        client.delete_collection(&PODS, &which, &how).await.map_err(|it| it.to_string())?;
        let gone = self.wait(self.deadline(PATIENCE), || {
            let left = self.stage.world.present(&self.namespace);
            if left.is_empty() { Ok(()) } else { Err(format!("still there after its deletion: {left:?}")) }
        });
        let gone = gone.await;
        let namespace = Key::cluster(&self.namespace);
        client.delete(&NAMESPACES, &namespace, &DeleteParams::default()).await.map_err(|it| it.to_string())?;
        if let Some(command) = &self.case.after {
            let (exit, output) = self.on_node(command, &namespace, self.deadline(PATIENCE)).await?;
            if exit != 0 {
                return Err(format!("{command}\nended with {exit}: {output}"));
            }
        }
        self.stage.world.forget(&self.namespace);
        gone
    }

    fn key(&self, name: &str) -> Key {
        Key::new(&*self.namespace, name)
    }

    async fn prepare(&self) -> Verdict {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        self.create(&namespace).await?;
        // A Pod without an account is refused.
        let has_account = || {
            let made = self.stage.world.has_account(&self.namespace);
            if made { Ok(()) } else { Err("its ServiceAccount is not made".to_owned()) }
        };
        self.wait(self.deadline(PATIENCE), has_account).await?;
        if let Some(command) = &self.case.before {
            let (exit, output) = self.on_node(command, &Key::default(), self.deadline(PATIENCE)).await?;
            if exit != 0 {
                return Err(format!("{command}\nended with {exit}: {output}"));
            }
        }
        for manifest in &self.case.given {
            self.create(manifest).await?;
        }
        Ok(())
    }

    async fn create(&self, manifest: &Value) -> Verdict {
        let (resource, key) = self.place_of(manifest)?;
        let made = self.stage.client.create(&resource, &key.namespace, manifest).await;
        made.map(drop).map_err(|it| it.to_string())
    }

    /// Which resource a manifest is of, and its name; in the case's namespace unless it says another.
    fn place_of(&self, manifest: &Value) -> Result<(Resource, Key), String> {
        let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        let (version, kind) = (text(&manifest["apiVersion"]), text(&manifest["kind"]));
        let row = corten_kinds::by_kind(&version, &kind).ok_or_else(|| format!("there is no kind {version} {kind}"))?;
        let resource = row.resource.clone();
        let metadata = &manifest["metadata"];
        let namespace = match metadata["namespace"].as_str() {
            _ if !resource.namespaced => String::new(),
            Some(namespace) => namespace.to_owned(),
            None => self.namespace.clone(),
        };
        Ok((resource, Key::new(namespace, text(&metadata["name"]))))
    }

    fn deadline(&self, patience: Duration) -> Instant {
        Instant::now() + patience.mul_f64(self.stage.cluster.slowness())
    }

    // ---- steps ----

    async fn step(&mut self, step: &Step, pod: &Key) -> Verdict {
        let deadline = self.deadline(step.within.map_or(PATIENCE, Duration::from_secs));
        self.act(step, pod).await?;
        if let Some(command) = step.exec.as_ref() {
            let (exit, output) = self.in_container(command, step, pod, deadline).await?;
            judge(step, exit, &output)?;
        }
        if let Some(command) = &step.run {
            let (exit, output) = self.on_node(command, pod, deadline).await?;
            judge(step, exit, &output)?;
        }
        let place = self.places.get(&pod.name).copied().unwrap_or(0);
        let place = self.see(step, pod, place, deadline).await?;
        self.places.insert(pod.name.clone(), place);
        for (logs, is_previous) in [(&step.log, false), (&step.previous, true)] {
            for (container, text) in logs.iter().flatten() {
                let log = self.log(pod, container, is_previous, text, deadline).await;
                log.map_err(|it| format!("log of {container}: {it}"))?;
            }
        }
        if let Some(text) = &step.why {
            self.why(pod, text, deadline).await?;
        }
        Ok(())
    }

    async fn act(&self, step: &Step, pod: &Key) -> Verdict {
        let client = &self.stage.client;
        let said = |it: Error| it.to_string();
        if let Some(manifest) = &step.apply {
            let (resource, key) = self.place_of(manifest)?;
            let manner = PatchType::Apply { manager: "e2e".into(), force: true };
            client.patch(&resource, &key, "", &manner, manifest).await.map_err(said)?;
        }
        for (patch, subresource) in [(&step.patch, ""), (&step.patch_status, "status")] {
            if let Some(patch) = patch {
                client.patch(&PODS, pod, subresource, &PatchType::Strategic, patch).await.map_err(said)?;
            }
        }
        if let Some(delete) = &step.delete {
            let how = DeleteParams { grace_seconds: delete.grace, ..DeleteParams::default() };
            client.delete(&PODS, pod, &how).await.map_err(said)?;
        }
        Ok(())
    }

    /// The first version from `place` on at which all holds, in the light of the events so far.
    async fn see(&self, step: &Step, pod: &Key, place: usize, deadline: Instant) -> Result<usize, String> {
        let world = &self.stage.world;
        let mut found = place;
        let look = || {
            let events = world.events(pod);
            if let Some(wanted) = &step.order {
                expect::order(wanted, &events)?;
            }
            let versions = world.versions(pod, place);
            if step.gone == Some(true) {
                let gone = versions.last().is_some_and(Option::is_none);
                return if gone { Ok(()) } else { Err("the pod is there".to_owned()) };
            }
            let mut why = "there is no such pod".to_owned();
            for (idx, version) in versions.iter().enumerate() {
                let Some(version) = version else { continue };
                match expect::glimpse(&step.glimpse, version, &events) {
                    Ok(()) => {
                        found = place + idx;
                        return Ok(());
                    }
                    Err(it) => why = it,
                }
            }
            Err(why)
        };
        self.wait(deadline, look).await?;
        Ok(found)
    }

    async fn wait(&self, deadline: Instant, mut look: impl FnMut() -> Verdict) -> Verdict {
        loop {
            let mut changes = self.stage.world.changes();
            let Err(why) = look() else { return Ok(()) };
            if !matches!(timeout_at(deadline, changes.changed()).await, Ok(Ok(()))) {
                return Err(why);
            }
        }
    }

    fn never(&self, pod: &Key) -> Verdict {
        let events = self.stage.world.events(pod);
        for version in self.stage.world.versions(pod, 0).iter().flatten() {
            for glimpse in &self.case.never {
                if expect::glimpse(glimpse, version, &events).is_ok() {
                    return Err(format!("{glimpse:?} was seen in {}", version["status"]));
                }
            }
        }
        Ok(())
    }

    // ---- logs ----

    /// Reads a log until it fits. A container that goes on is followed; of one that has ended the whole log counts.
    async fn log(&self, pod: &Key, container: &str, is_previous: bool, text: &Text, deadline: Instant) -> Verdict {
        let mut verdict = Err("nothing was answered".to_owned());
        loop {
            let known = self.stage.world.versions(pod, 0).len();
            let follow = !is_previous && !self.has_ended(pod, container);
            let path = format!("{}/log?container={container}&previous={is_previous}&follow={follow}", PODS.path(pod));
            let read = timeout_at(deadline, self.read_log(&path, follow, text, &mut verdict)).await;
            if let Ok(Err(failure)) = read {
                verdict = Err(failure);
            }
            if verdict.is_ok() {
                return Ok(());
            }
            // Another log, or more of it, comes with another state of the Pod.
            let news = || if self.stage.world.versions(pod, 0).len() > known { Ok(()) } else { Err(String::new()) };
            if self.wait(deadline, news).await.is_err() {
                return verdict;
            }
        }
    }

    /// Judges what has come so far, again with each piece.
    async fn read_log(&self, path: &str, follow: bool, text: &Text, verdict: &mut Verdict) -> Verdict {
        let request = Request::get(path).body(Bytes::new()).map_err(|it| it.to_string())?;
        let mut body = self.stage.client.send(request).await.map_err(|it| it.to_string())?.into_body();
        let mut log = Vec::new();
        loop {
            *verdict = expect::text(text, &String::from_utf8_lossy(&log));
            if follow && verdict.is_ok() {
                return Ok(());
            }
            let Some(frame) = body.frame().await else { return Ok(()) };
            let frame = frame.map_err(|it| it.to_string())?;
            log.extend_from_slice(frame.data_ref().map(Bytes::as_ref).unwrap_or_default());
        }
    }

    fn has_ended(&self, pod: &Key, container: &str) -> bool {
        let newest = self.stage.world.newest(pod);
        let status = newest.as_ref().map(|it| &it["status"]).unwrap_or(&Value::Null);
        let lists = ["initContainerStatuses", "containerStatuses"];
        let mut all = lists.iter().flat_map(|it| status[it].as_array()).flatten();
        all.any(|it| it["name"] == container && it["state"]["terminated"].is_object())
    }

    // ---- commands ----

    async fn in_container(
        &self,
        command: &str,
        step: &Step,
        pod: &Key,
        deadline: Instant,
    ) -> Result<(i32, String), String> {
        let mut kubectl = std::process::Command::new("kubectl");
        kubectl.args(["exec", "-n", &pod.namespace, &pod.name]);
        if let Some(container) = &step.r#in {
            kubectl.args(["-c", container]);
        }
        kubectl.args(["--", "sh", "-c", command]);
        self.command(kubectl, deadline).await
    }

    async fn on_node(&self, command: &str, pod: &Key, deadline: Instant) -> Result<(i32, String), String> {
        let mut bash = std::process::Command::new("bash");
        let newest = self.stage.world.newest(pod);
        let text = |pointer: &str| newest.as_ref().and_then(|it| it.pointer(pointer)?.as_str()).unwrap_or_default();
        bash.args(["-c", command])
            .env("NAMESPACE", &self.namespace)
            .env("POD_UID", text("/metadata/uid"))
            .env("POD_IP", text("/status/podIP"));
        self.command(bash, deadline).await
    }

    async fn command(&self, mut command: std::process::Command, deadline: Instant) -> Result<(i32, String), String> {
        self.stage.cluster.environment(&mut command);
        let mut command = Command::from(command);
        let run = command.stdin(Stdio::null()).kill_on_drop(true).output();
        let output = timeout_at(deadline, run).await.map_err(|_| "the command took too long".to_owned())?;
        let output = output.map_err(|it| format!("cannot run {command:?}: {it}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        Ok((output.status.code().unwrap_or(-1), text))
    }

    /// What stands in the journal comes a moment after the status.
    async fn why(&self, pod: &Key, text: &Text, deadline: Instant) -> Verdict {
        loop {
            let mut changes = self.stage.world.changes();
            let mut corten = std::process::Command::new("corten");
            corten.args(["why", "-n", &pod.namespace, &format!("pod/{}", pod.name)]);
            let (_, output) = self.command(corten, deadline).await?;
            let verdict = expect::text(text, &output);
            if verdict.is_ok() || !matches!(timeout_at(deadline, changes.changed()).await, Ok(Ok(()))) {
                return verdict.map_err(|it| format!("corten why: {it}"));
            }
        }
    }
}

fn judge(step: &Step, exit: i32, output: &str) -> Verdict {
    let expected = step.exit.unwrap_or(0);
    if exit != expected {
        return Err(format!("exit code {exit}, not {expected}; it printed\n{output}"));
    }
    step.prints.as_ref().map_or(Ok(()), |it| expect::text(it, output))
}
