//! The ports that the API server has chosen for a Pod, as its containers are told of them: by variables, and by words of their
//! command lines.

use std::{borrow::Cow, collections::BTreeMap};

use corten_api::{
    core::v1::Pod,
    host_ports::{HOST_PORTS, Noted},
};

use crate::spec::pod::spec_of;

/// By name. The annotation says which they are, and the spec which number each has.
#[derive(Default)]
pub(crate) struct ChosenPorts<'p>(BTreeMap<&'p str, i32>);

impl<'p> ChosenPorts<'p> {
    pub(crate) fn of(pod: &'p Pod) -> Self {
        let note = pod.metadata.annotations.as_ref().and_then(|it| it.get(HOST_PORTS));
        let noted: Noted = note.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
        if noted.is_empty() {
            return Self::default();
        }
        let spec = spec_of(pod);
        let sidecars =
            spec.init_containers.iter().flatten().filter(|it| it.restart_policy.as_deref() == Some("Always"));
        let ports = spec.containers.iter().chain(sidecars).flat_map(|it| it.ports.iter().flatten());
        let named = ports.filter_map(|it| Some((it.name.as_deref()?, it.container_port)));
        Self(named.filter(|it| noted.contains_key(it.0)).collect())
    }

    /// `PORT_HTTP`, and `PORT` where there is one.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (String, String)> {
        let named = self.0.iter().map(|(name, port)| (format!("PORT_{}", variable(name)), port.to_string()));
        named.chain(self.only().map(|it| ("PORT".to_owned(), it.to_string())))
    }

    fn only(&self) -> Option<i32> {
        let mut all = self.0.values();
        all.next().copied().filter(|_| all.next().is_none())
    }

    /// A text with numbers in the place of `%port:http%`, and of `%port%` where there is one. What names no such port stays.
    pub(crate) fn put_into<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.0.is_empty() || !text.contains(WORD) {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(WORD) {
            out.push_str(before);
            let named = |it: &'t str| it.split_once('%').and_then(|(name, after)| Some((*self.0.get(name)?, after)));
            let found = match after.strip_prefix('%') {
                Some(after) => self.only().map(|it| (it, after)),
                None => after.strip_prefix(':').and_then(named),
            };
            rest = match found {
                Some((port, after)) => {
                    out.push_str(&port.to_string());
                    after
                }
                None => {
                    out.push_str(WORD);
                    after
                }
            };
        }
        out.push_str(rest);
        out.into()
    }
}

const WORD: &str = "%port";

/// Names of ports have small letters, digits and dashes.
fn variable(name: &str) -> String {
    name.to_ascii_uppercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(note: &str, ports: &serde_json::Value) -> Pod {
        let pod = json!({
            "metadata": { "name": "p", "annotations": { HOST_PORTS: note } },
            "spec": { "containers": [{ "name": "c", "ports": ports }] },
        });
        serde_json::from_value(pod).expect("a pod")
    }

    #[test]
    fn those_that_were_chosen_are_told() {
        let http = json!({ "name": "http", "containerPort": 20417 });
        let two = json!([http, { "name": "ad-min", "containerPort": 20418 }, { "name": "fixed", "containerPort": 80 }]);
        let named =
            |it: &[(&str, &str)]| it.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>();
        for (note, ports, variables) in [
            (r#"{"http":20417}"#, json!([http]), named(&[("PORT_HTTP", "20417"), ("PORT", "20417")])),
            (r#"{"http":20417,"ad-min":1}"#, two.clone(), named(&[("PORT_AD_MIN", "20418"), ("PORT_HTTP", "20417")])),
            (r#"{"gone":1}"#, json!([http]), vec![]),
            ("no JSON", two, vec![]),
        ] {
            let pod = pod(note, &ports);
            assert_eq!(ChosenPorts::of(&pod).variables().collect::<Vec<_>>(), variables, "{note}");
        }
    }

    #[test]
    fn words_are_replaced() {
        let one = pod(r#"{"http":1}"#, &json!([{ "name": "http", "containerPort": 20417 }]));
        let http = json!({ "name": "http", "containerPort": 20417 });
        let two = pod(r#"{"http":1,"grpc":1}"#, &json!([http, { "name": "grpc", "containerPort": 20418 }]));
        let none = pod("{}", &json!([http]));
        for (pod, text, expected) in [
            (&one, "--listen=:%port%", "--listen=:20417"),
            (&one, "%port:http%%port%/%port:grpc%%port%", "2041720417/%port:grpc%20417"),
            (&one, "%port %port: %portal%", "%port %port: %portal%"),
            (&two, "%port% %port:http%,%port:grpc%", "%port% 20417,20418"),
            (&none, "%port% %port:http%", "%port% %port:http%"),
        ] {
            assert_eq!(ChosenPorts::of(pod).put_into(text), expected, "{text}");
        }
        let long = "%port:".repeat(1 << 20);
        assert_eq!(ChosenPorts::of(&one).put_into(&long), long);
    }
}
