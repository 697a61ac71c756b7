//! Reads what a method and a path mean, by the rules of upstream's RequestInfoFactory.
//!
//! Each segment is decoded once, before anything is compared: `/api/v1/w%61tch/…` is a watch, and authorized as one.

use std::borrow::Cow;

use corten_kinds::{Kind, KindRef, Kinds};
use corten_meta::FieldSelector;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::{PathForm, Pattern, Query, Route};

/// What a request asks for. Authorization, audit, metrics and the verbs read this and nothing else of the path.
#[derive(Clone, Default)]
pub struct RequestInfo {
    /// Where it is no resource: the decoded path, without a slash at its end.
    pub path: String,
    /// As RBAC writes it: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; the lower-case
    /// method where the path is no resource; empty for methods that mean nothing.
    pub verb: &'static str,
    pub group: String,
    pub version: String,
    /// The plural, for example `pods`.
    pub plural: String,
    /// Of a Namespace and its subresources: its own name, so that a role in it may allow them.
    pub namespace: String,
    /// Empty for collections; the one name that a list or a watch selects by `metadata.name`.
    pub name: String,
    pub subresource: String,
    /// What stands behind `/proxy`, as it was sent; `None` where the path leads to no such subresource.
    pub proxied: Option<String>,
    pub query: Query,
    pub route: Route,
}

/// Why a path cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPath {
    NotUtf8,
    /// A slash within a name would reach into another namespace's keys.
    EncodedSlash,
}

impl BadPath {
    pub fn as_str(self) -> &'static str {
        "the path is not valid UTF-8 or holds an encoded slash"
    }
}

/// A path, decoded and parted.
struct Segments<'a> {
    names: Vec<Cow<'a, str>>,
    proxied: Option<&'a str>,
}

impl<'a> Segments<'a> {
    fn of(path: &'a str) -> Result<Self, BadPath> {
        // The star of `OPTIONS *`, and nothing where a connection is asked for: no segment of any path.
        let Some(mut rest) = path.strip_prefix('/') else {
            return Ok(Self { names: vec![path.into()], proxied: None });
        };
        let mut names: Vec<Cow<'a, str>> = Vec::with_capacity(8);
        loop {
            let end = rest.find('/').unwrap_or(rest.len());
            let name = percent_decode_str(&rest[..end]).decode_utf8().map_err(|_| BadPath::NotUtf8)?;
            if name.contains('/') {
                return Err(BadPath::EncodedSlash);
            }
            rest = &rest[end..];
            // A slash at the end says nothing.
            if !(name.is_empty() && rest.is_empty()) {
                names.push(name);
            }
            if leads_to_proxy(&names) {
                return Ok(Self { names, proxied: Some(rest) });
            }
            match rest.strip_prefix('/') {
                Some(next) => rest = next,
                None => return Ok(Self { names, proxied: None }),
            }
        }
    }
}

/// The words of a resource's path, from the plural on.
struct Words<'p> {
    is_watched: bool,
    /// Does the path lead through a namespace?
    is_within: bool,
    parts: &'p [&'p str],
}

/// Behind `/proxy`, a path is somebody else's to read.
fn leads_to_proxy(names: &[Cow<'_, str>]) -> bool {
    // Most paths have other lengths: nothing is compared then.
    match names {
        [api, version, nodes, _, proxy] => [&**api, version, nodes, proxy] == ["api", "v1", "nodes", "proxy"],
        [api, version, namespaces, _, plural, _, proxy] => {
            [&**api, version, namespaces, proxy] == ["api", "v1", "namespaces", "proxy"]
                && matches!(&**plural, "pods" | "services")
        }
        _ => false,
    }
}

impl RequestInfo {
    /// # Errors
    /// Where the path cannot be read.
    pub fn read(kinds: &Kinds, method: &str, path: &str, query: Option<&str>) -> Result<Self, BadPath> {
        Self::read_beside(kinds, &|_, _| false, method, path, query)
    }

    /// As [`RequestInfo::read`], where other servers serve the groups and versions of which `is_aggregated` says so.
    ///
    /// # Errors
    /// Where the path cannot be read.
    pub fn read_beside(
        kinds: &Kinds,
        is_aggregated: &dyn Fn(&str, &str) -> bool,
        method: &str,
        path: &str,
        query: Option<&str>,
    ) -> Result<Self, BadPath> {
        let Segments { names, proxied } = Segments::of(path)?;
        let names: Vec<&str> = names.iter().map(|it| &**it).collect();
        let mut info = Self { proxied: proxied.map(str::to_owned), query: Query::parse(query), ..Self::default() };
        // An empty segment is nobody's name: such a path is no resource.
        let is_resource = !names.contains(&"");
        let rest = match names[..] {
            ["api", version, ref rest @ ..] if is_resource && !rest.is_empty() => {
                version.clone_into(&mut info.version);
                rest
            }
            ["apis", group, version, ref rest @ ..] if is_resource && !rest.is_empty() => {
                group.clone_into(&mut info.group);
                version.clone_into(&mut info.version);
                rest
            }
            ["apis", group, version] if is_resource && is_aggregated(group, version) => {
                group.clone_into(&mut info.group);
                version.clone_into(&mut info.version);
                info.path = format!("/{}", names.join("/"));
                info.verb = method_verb(method);
                info.route = Route::Aggregated { is_resource: false };
                return Ok(info);
            }
            _ => {
                info.path = if path.starts_with('/') { format!("/{}", names.join("/")) } else { path.to_owned() };
                info.proxied = None;
                info.verb = method_verb(method);
                return Ok(info);
            }
        };
        if is_aggregated(&info.group, &info.version) {
            info.read_aggregated(method, rest);
        } else {
            info.read_resource(kinds, method, rest);
        }
        Ok(info)
    }

    /// Is it one of a kind's paths, or would it be if there were such a kind?
    pub fn is_resource(&self) -> bool {
        !matches!(self.route, Route::NonResource | Route::Aggregated { is_resource: false })
    }

    pub fn kind(&self) -> Option<&KindRef> {
        self.route.kind()
    }

    fn read_resource(&mut self, kinds: &Kinds, method: &str, parts: &[&str]) {
        let Words { is_watched, is_within, parts } = self.read_words(method, parts);
        self.route = match kinds.by_path(&self.group, &self.version, &self.plural) {
            None => Route::UnknownResource,
            Some(kind) if parts.len() > 3 || kind.resource.namespaced != is_within && !self.is_of_all(&kind) => {
                Route::NoSuchPath(kind)
            }
            Some(kind) => self.route_of(kind, method, is_watched),
        };
        self.read_selected_name();
    }

    /// What another server's path asks for, of whose resources nothing is known here.
    fn read_aggregated(&mut self, method: &str, parts: &[&str]) {
        // The other server might take them out of the path, and would then do something else than was authorized.
        let is_clear = !parts.iter().any(|it| matches!(*it, "." | ".."));
        self.read_words(method, parts);
        self.route = if is_clear { Route::Aggregated { is_resource: true } } else { Route::UnknownResource };
        self.read_selected_name();
    }

    fn read_words<'p>(&mut self, method: &str, parts: &'p [&'p str]) -> Words<'p> {
        let (is_watched, parts) = match parts {
            ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
            _ => (false, parts),
        };
        let (is_within, parts) = self.read_namespace(parts);
        self.plural = parts[0].to_owned();
        self.name = parts.get(1).copied().unwrap_or_default().to_owned();
        self.subresource = parts.get(2).copied().unwrap_or_default().to_owned();
        self.verb = if is_watched { "watch" } else { self.resource_verb(method) };
        Words { is_watched, is_within, parts }
    }

    fn read_selected_name(&mut self) {
        if self.name.is_empty() && matches!(self.verb, "list" | "watch") {
            // A list of one name is authorized as that name (RequestInfoFactory.NewRequestInfo).
            let selector = FieldSelector::parse(self.query.get("fieldSelector").unwrap_or_default());
            self.name = selector.unwrap_or_default().exact("metadata.name").unwrap_or_default().to_owned();
        }
    }

    /// Takes `namespaces/NAME` off the path of what is in one. The Namespace itself and its subresources stay as they are.
    fn read_namespace<'p>(&mut self, parts: &'p [&'p str]) -> (bool, &'p [&'p str]) {
        let ["namespaces", namespace, within @ ..] = parts else { return (false, parts) };
        (*namespace).clone_into(&mut self.namespace);
        match within {
            [] | ["status" | "finalize", ..] => (false, parts),
            _ => (true, within),
        }
    }

    /// Is it about the objects of all namespaces?
    fn is_of_all(&self, kind: &Kind) -> bool {
        kind.resource.namespaced && self.namespace.is_empty() && self.name.is_empty()
    }

    fn resource_verb(&self, method: &str) -> &'static str {
        match method {
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" if self.name.is_empty() => "deletecollection",
            "DELETE" => "delete",
            "GET" | "HEAD" if !self.name.is_empty() => "get",
            "GET" | "HEAD" if self.query.is_set("watch") => "watch",
            "GET" | "HEAD" => "list",
            _ => "",
        }
    }

    /// The scope of the path is the kind's.
    fn route_of(&self, kind: KindRef, method: &str, is_watched: bool) -> Route {
        let is_of_all = self.is_of_all(&kind);
        let place = match (&*self.name, &*self.subresource) {
            ("", _) if is_of_all && is_watched => PathForm::WatchAllNamespaces,
            ("", _) if is_of_all => PathForm::AllNamespaces,
            ("", _) if is_watched => PathForm::WatchCollection,
            ("", _) => PathForm::Collection,
            (_, "") if is_watched => PathForm::WatchObject,
            (_, "") => PathForm::Object,
            (_, subresource) => match kind.subresources.iter().find(|it| it.as_str() == subresource) {
                Some(subresource) if !is_watched => PathForm::Subresource(*subresource),
                _ => return Route::NoSuchPath(kind),
            },
        };
        let pattern = Pattern { kind: &kind, place };
        if !pattern.exists() {
            return Route::NoSuchPath(kind);
        }
        let verb = pattern.verbs().find(|it| it.as_str() == self.verb);
        match (place, verb) {
            (PathForm::Subresource(it), verb) if verb.is_some() || it.takes_every_method() => {
                Route::Subresource(kind, it, verb)
            }
            (PathForm::Object | PathForm::WatchObject, Some(verb)) if !is_watched || is_read(method) => {
                Route::Object(kind, verb)
            }
            (_, Some(verb)) if !is_watched || is_read(method) => Route::Collection(kind, verb),
            _ => Route::NoSuchMethod(kind),
        }
    }

    /// The path with nothing encoded that need not be, and with `watch` in it where that is the verb.
    pub fn canonical_path(&self) -> String {
        /// What a segment cannot hold as it is.
        const ENCODED: &AsciiSet = &CONTROLS
            .add(b' ')
            .add(b'"')
            .add(b'#')
            .add(b'%')
            .add(b'/')
            .add(b'<')
            .add(b'>')
            .add(b'?')
            .add(b'`')
            .add(b'{')
            .add(b'}');
        let encoded = |it: &str| utf8_percent_encode(it, ENCODED).to_string();
        if !self.is_resource() {
            return self.path.split('/').map(encoded).collect::<Vec<_>>().join("/");
        }
        let mut segments = if self.group.is_empty() { vec!["api"] } else { vec!["apis", &self.group] };
        segments.push(&self.version);
        if self.verb == "watch" {
            segments.push("watch");
        }
        let is_namespace = self.plural == "namespaces" && self.name == self.namespace;
        if !self.namespace.is_empty() && !is_namespace {
            segments.extend(["namespaces", &self.namespace]);
        }
        segments.push(&self.plural);
        let is_selected = matches!(self.route, Route::Collection(..));
        let name = if is_selected { "" } else { &*self.name };
        segments.extend([name, &self.subresource].into_iter().filter(|it| !it.is_empty()));
        let path: String = segments.into_iter().map(|it| format!("/{}", encoded(it))).collect();
        path + self.proxied.as_deref().unwrap_or_default()
    }
}

fn is_read(method: &str) -> bool {
    matches!(method, "GET" | "HEAD")
}

fn method_verb(method: &str) -> &'static str {
    match method {
        "GET" => "get",
        "HEAD" => "head",
        "POST" => "post",
        "PUT" => "put",
        "PATCH" => "patch",
        "DELETE" => "delete",
        "OPTIONS" => "options",
        _ => "",
    }
}
