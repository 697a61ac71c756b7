//! What a tunnel, or a request that is passed on, begins with, as an object (`PodExecOptions` and its like): what others are shown of it,
//! and may change.

use corten_kinds::Subresource;
use serde_json::{Value, json};

use crate::RequestInfo;

const FLAGS: [&str; 4] = ["stdin", "stdout", "stderr", "tty"];

impl RequestInfo {
    /// `None` of a request that begins none.
    pub fn connect_options(&self) -> Option<Value> {
        let subresource = self.route.subresource()?;
        let kind = match subresource {
            Subresource::Exec => "PodExecOptions",
            Subresource::Attach => "PodAttachOptions",
            Subresource::PortForward => "PodPortForwardOptions",
            Subresource::Proxy => match &*self.plural {
                "nodes" => "NodeProxyOptions",
                "services" => "ServiceProxyOptions",
                _ => "PodProxyOptions",
            },
            _ => return None,
        };
        let mut options = json!({ "kind": kind, "apiVersion": "v1" });
        let query = &self.query;
        match subresource {
            Subresource::Proxy => options["path"] = self.proxied.clone().unwrap_or_default().into(),
            Subresource::PortForward => {
                let ports = query.all("ports").flat_map(|it| it.split(',')).filter_map(|it| it.parse::<u16>().ok());
                options["ports"] = ports.collect();
            }
            _ => {
                for flag in FLAGS.into_iter().filter(|it| query.is_set(it)) {
                    options[flag] = true.into();
                }
                if let Some(container) = query.get("container") {
                    options["container"] = container.into();
                }
                if subresource == Subresource::Exec {
                    options["command"] = query.all("command").collect();
                }
            }
        }
        Some(options)
    }

    /// Lets the request begin with `options`, which were made of its own.
    ///
    /// # Errors
    /// The field that holds what no such request can have.
    pub fn take_connect_options(&mut self, options: &Value) -> Result<(), String> {
        match self.route.subresource() {
            Some(Subresource::Proxy) => self.proxied = Some(path(options)?),
            Some(Subresource::PortForward) => {
                let ports = list(options, "ports", |it| it.as_u64().and_then(|it| u16::try_from(it).ok()))?;
                self.replace(&["ports"], ports.into_iter().map(|it| ("ports", it.to_string())).collect());
            }
            Some(subresource @ (Subresource::Exec | Subresource::Attach)) => {
                let mut given = Vec::new();
                for flag in FLAGS {
                    if field(options, flag, Value::as_bool)?.unwrap_or_default() {
                        given.push((flag, "true".to_owned()));
                    }
                }
                given.extend(field(options, "container", Value::as_str)?.map(|it| ("container", it.to_owned())));
                if subresource == Subresource::Exec {
                    let command = list(options, "command", |it| it.as_str().map(str::to_owned))?;
                    given.extend(command.into_iter().map(|it| ("command", it)));
                }
                self.replace(&["stdin", "stdout", "stderr", "tty", "container", "command"], given);
            }
            _ => {}
        }
        Ok(())
    }

    fn replace(&mut self, names: &[&str], given: Vec<(&str, String)>) {
        let query = &mut self.query.0;
        query.retain(|(name, _)| !names.contains(&&**name));
        query.extend(given.into_iter().map(|(name, value)| (name.to_owned(), value)));
    }
}

/// As a request's own path is: below the object, still encoded.
fn path(options: &Value) -> Result<String, String> {
    let path = field(options, "path", Value::as_str)?.unwrap_or_default();
    let is_plain = path.bytes().all(|it| it.is_ascii_graphic() && !b"?#\\".contains(&it));
    if is_plain && (path.is_empty() || path.starts_with('/')) { Ok(path.to_owned()) } else { Err(unfit("path")) }
}

fn field<'v, T>(options: &'v Value, name: &str, read: impl Fn(&'v Value) -> Option<T>) -> Result<Option<T>, String> {
    match &options[name] {
        Value::Null => Ok(None),
        value => read(value).map(Some).ok_or_else(|| unfit(name)),
    }
}

fn list<T>(options: &Value, name: &str, read: impl Fn(&Value) -> Option<T>) -> Result<Vec<T>, String> {
    let items = field(options, name, Value::as_array)?.map_or(&[][..], Vec::as_slice);
    items.iter().map(|it| read(it).ok_or_else(|| unfit(name))).collect()
}

fn unfit(name: &str) -> String {
    format!("{name}: the request cannot begin with this")
}

#[cfg(test)]
mod tests {
    use corten_kinds::{KINDS, KindRef};

    use super::*;
    use crate::{Query, Route};

    fn begun(subresource: Subresource, query: &str, proxied: Option<&str>) -> RequestInfo {
        let pods = KINDS.iter().find(|it| it.resource.plural == "pods").expect("there are Pods");
        let route = Route::Subresource(KindRef::BuiltIn(pods), subresource, None);
        let query = Query::parse(Some(query));
        RequestInfo {
            route,
            query,
            plural: "pods".into(),
            proxied: proxied.map(str::to_owned),
            ..RequestInfo::default()
        }
    }

    #[test]
    fn what_others_make_of_the_options_takes_their_place() {
        use Subresource::{Attach, Exec, PortForward, Proxy};
        for (subresource, query, proxied, changes, outcome) in [
            (
                Exec,
                "container=a&stdin=1&command=rm&command=x&x=y",
                None,
                json!({ "command": ["ls"], "container": "b", "tty": true }),
                Ok((vec![("x", "y"), ("stdin", "true"), ("tty", "true"), ("container", "b"), ("command", "ls")], None)),
            ),
            (Attach, "stdin=true&container=a", None, json!({ "stdin": false }), Ok((vec![("container", "a")], None))),
            (PortForward, "ports=80,81", None, json!({ "ports": [90] }), Ok((vec![("ports", "90")], None))),
            (Proxy, "q=1", Some("/secret"), json!({ "path": "/public" }), Ok((vec![("q", "1")], Some("/public")))),
            (Exec, "command=ls", None, json!({ "command": "rm -r /" }), Err("command")),
            (Exec, "command=ls", None, json!({ "tty": "yes" }), Err("tty")),
            (PortForward, "ports=80", None, json!({ "ports": [70_000] }), Err("ports")),
            (Proxy, "", Some("/a"), json!({ "path": "/a?b=c" }), Err("path")),
            (Proxy, "", Some("/a"), json!({ "path": "a b" }), Err("path")),
            (Proxy, "", Some("/a"), json!({ "path": "/a\r\nX: y" }), Err("path")),
        ] {
            let mut info = begun(subresource, query, proxied);
            let mut options = info.connect_options().expect("it begins something");
            for (name, value) in changes.as_object().expect("an object") {
                options[name] = value.clone();
            }
            let taken = info.take_connect_options(&options);
            match outcome {
                Ok((query, proxied)) => {
                    assert_eq!(taken, Ok(()), "{options}");
                    let query: Vec<_> =
                        query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
                    assert_eq!((info.query.0, info.proxied.as_deref()), (query, proxied), "{options}");
                }
                Err(name) => assert!(taken.is_err_and(|it| it.starts_with(name)), "{options}"),
            }
        }
    }

    #[test]
    fn a_request_with_its_own_options_stays_as_it_is() {
        let mut info = begun(Subresource::Exec, "command=a&command=b&stdin=true&container=c", None);
        let options = info.connect_options().expect("it begins something");
        assert_eq!(info.take_connect_options(&options), Ok(()));
        assert_eq!(info.connect_options(), Some(options));
        assert_eq!(begun(Subresource::Status, "", None).connect_options(), None);
    }
}
