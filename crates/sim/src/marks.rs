//! Somebody who writes at one server and reads at another, again and again: nothing that was answered is missed anywhere, and no server
//! takes back what it has shown, however old that may be.

use std::sync::Arc;

use corten_api::resources::CONFIG_MAPS;
use corten_client::{Client, ListParams, PatchType};
use corten_meta::Key;
use serde_json::{Value, json};

use crate::{line::Weather, seeded_rng::SeededRng};

const NAME: &str = "marks";

/// What is known of servers, by their place.
#[derive(Default)]
struct ObservedMarks {
    /// The newest mark that was answered, and its version.
    written: (u64, u64),
    /// Of the newest list that the server showed without being asked for the newest.
    shown: Vec<u64>,
}

/// Goes on for ever; what must not be is told to `weather`.
pub(crate) async fn play(servers: Vec<Client>, dice: SeededRng, weather: Arc<Weather>) {
    let mut observed = ObservedMarks { shown: vec![0; servers.len()], ..ObservedMarks::default() };
    for mark in 1.. {
        tokio::time::sleep(dice.millis(200, 3000)).await;
        let pick = || usize::try_from(dice.below(servers.len() as u64)).expect("less than the number of servers");
        let (one, other, old) = (pick(), pick(), pick());
        if let Some(version) = write(&servers[one], mark).await {
            observed.written = (mark, version);
        }
        let read = servers[other].get_as::<Value>(&CONFIG_MAPS, &Key::new("default", NAME)).await;
        let any = ListParams { namespace: "default".into(), resource_version: "0".into(), ..ListParams::default() };
        let listed = servers[old].list(&CONFIG_MAPS, &any).await;
        let read = match read {
            Ok(object) => observed.read(&object),
            Err(error) if error.is_not_found() => observed.read(&Value::Null),
            Err(_) => Ok(()),
        };
        let shown = listed.map_or(Ok(()), |it| observed.listed(old, &it.resource_version));
        if let Err(violation) = read.and(shown) {
            weather.violation.lock().get_or_insert(violation);
        }
    }
}

async fn write(server: &Client, mark: u64) -> Option<u64> {
    let patch = json!({ "data": { "mark": mark.to_string() } });
    let patched = server.patch(&CONFIG_MAPS, &Key::new("default", NAME), "", &PatchType::Merge, &patch).await;
    let stored = match patched {
        Err(error) if error.is_not_found() => {
            let mut made = patch;
            made["metadata"] = json!({ "name": NAME });
            server.create(&CONFIG_MAPS, "default", &made).await
        }
        patched => patched,
    };
    version(&serde_json::from_slice(&stored.ok()?).ok()?)
}

fn version(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

impl ObservedMarks {
    fn read(&self, object: &Value) -> Result<(), String> {
        let (mark, at) = self.written;
        let is = object["data"]["mark"].as_str().and_then(|it| it.parse().ok()).unwrap_or(0);
        let version = version(object).unwrap_or(0);
        if is < mark || version < at {
            return Err(format!("mark {mark} was written at {at}, and read as {is} of {version} after that"));
        }
        Ok(())
    }

    fn listed(&mut self, server: usize, version: &str) -> Result<(), String> {
        let version = version.parse().unwrap_or(0);
        let before = std::mem::replace(&mut self.shown[server], version);
        if version < before {
            return Err(format!("server {server} showed a list of {before}, and then one of {version}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(mark: u64, version: u64) -> Value {
        json!({ "metadata": { "resourceVersion": version.to_string() }, "data": { "mark": mark.to_string() } })
    }

    #[test]
    fn what_was_answered_is_read_everywhere() {
        let observed = ObservedMarks { written: (3, 40), shown: Vec::new() };
        observed.read(&object(3, 40)).expect("it is the one");
        observed.read(&object(4, 41)).expect("one that was not answered");
        assert!(
            observed
                .read(&object(2, 30))
                .expect_err("it is old")
                .contains("mark 3 was written at 40, and read as 2 of 30")
        );
    }

    #[test]
    fn no_server_goes_back() {
        let mut observed = ObservedMarks { written: (0, 0), shown: vec![0; 2] };
        observed.listed(0, "7").expect("it goes on");
        observed.listed(1, "5").expect("another one may be behind");
        observed.listed(0, "7").expect("nothing is new");
        assert!(observed.listed(0, "6").expect_err("it goes back").contains("showed a list of 7, and then one of 6"));
    }
}
