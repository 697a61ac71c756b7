//! What each loop last decided about each object: the API kind `Journal` (`corten.dev/v1`) that `corten why` reads.

use corten_meta::{ObjectMeta, Time};
use serde::{Deserialize, Serialize, Serializer};

use crate::Wait;

/// The answer to "what do the loops say of this object?". Named `<resource>.<name>`: `pods.web-1`, `deployments.apps.web`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Journal {
    pub api_version: String,
    pub kind: String,
    pub metadata: ObjectMeta,
    /// One for each loop that has looked at the object, in name order.
    pub decisions: Vec<Decision>,
    /// The controllers of such objects that are off here, by upstream's names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub off: Vec<String>,
    /// What is not known of it, since a node does not answer: `m2 does not answer: …`
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<String>,
}

/// The newest decision of one loop about one object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// `deployment`, `scheduler`, `kubelet`.
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// What it did, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Wait>,
    /// The named steps it takes the object through, in order, where it has any (scheduler, kubelet).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// What a node sees of the object, where no API object says it (Pods and Nodes).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Box<Observation>>,
    /// The last effect's failure, and how often it has failed in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u32,
}

impl Decision {
    /// What it waits for as a whole, and at its steps.
    pub fn every_wait(&self) -> impl Iterator<Item = &Wait> {
        self.waits.iter().chain(self.steps.iter().filter_map(|it| it.wait.as_ref()))
    }
}

/// What a node sees of the processes of a Pod, or of its own machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observation {
    /// TCP ports at which they answer others, in order; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listening: Option<Vec<u16>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttled: Vec<Throttled>,
    /// Name servers of the Pod's resolv.conf that do not answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent_name_servers: Vec<String>,
}

/// A container that its CPU limit holds back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Throttled {
    pub container: String,
    /// In so many of a hundred of the last periods, over half a minute or more, it had used up its limit; whole tens.
    pub percent: u64,
    /// Its limit, in thousandths of a CPU.
    pub limit_millis: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// With microseconds: a step often takes less than the whole seconds that the API's times have.
#[expect(clippy::ref_option, reason = "serde's serialize_with passes a reference")]
fn precisely<S: Serializer>(time: &Option<Time>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(Time::micro).serialize(serializer)
}

/// One named step in an object's life: `scheduled`, `network`, `volumes`, `image user`, `container user`, `ready`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    pub name: String,
    pub state: StepState,
    #[serde(default, serialize_with = "precisely", skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    #[serde(default, serialize_with = "precisely", skip_serializing_if = "Option::is_none")]
    pub finished: Option<Time>,
    /// One line: what was done or is being done.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The last lines a container wrote before it ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
    /// What blocks it, where it is blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepState {
    /// An earlier step must end first.
    Pending,
    Running,
    /// It cannot go on; `wait` says why.
    Blocked,
    Done,
    Failed,
}
