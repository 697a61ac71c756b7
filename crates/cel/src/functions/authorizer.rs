//! Questions to the authorizer: what is asked is put together here.

use corten_meta::field;

use super::{Evaluated, Row};
use crate::{
    error::Error,
    opaque::authorizing::{Attributes, Authorizing, Decision, Stage},
    value::{Opaque, Value},
};

pub(super) const ROWS: &[Row] = &[
    ("authorizer_path", ".path(Authorizer, string) -> PathCheck", |it| {
        change(it, &Stage::Authorizer, |it, text| {
            if text.trim().is_empty() {
                return Err(Error::other("path must not be empty"));
            }
            it.asked.path = Some(text.to_owned());
            it.stage = Stage::Path;
            Ok(())
        })
    }),
    ("authorizer_group", ".group(Authorizer, string) -> GroupCheck", |it| {
        change(it, &Stage::Authorizer, |it, text| {
            text.clone_into(&mut it.asked.group);
            it.stage = Stage::Group;
            Ok(())
        })
    }),
    ("authorizer_serviceaccount", ".serviceAccount(Authorizer, string, string) -> Authorizer", service_account),
    ("groupcheck_resource", ".resource(GroupCheck, string) -> ResourceCheck", |it| {
        change(it, &Stage::Group, |it, text| {
            if text.trim().is_empty() {
                return Err(Error::other("resource must not be empty"));
            }
            text.clone_into(&mut it.asked.resource);
            it.stage = Stage::Resource;
            Ok(())
        })
    }),
    ("resourcecheck_subresource", ".subresource(ResourceCheck, string) -> ResourceCheck", |it| {
        set(it, |it| &mut it.subresource)
    }),
    ("resourcecheck_namespace", ".namespace(ResourceCheck, string) -> ResourceCheck", |it| {
        set(it, |it| &mut it.namespace)
    }),
    ("resourcecheck_name", ".name(ResourceCheck, string) -> ResourceCheck", |it| set(it, |it| &mut it.name)),
    ("pathcheck_check", ".check(PathCheck, string) -> Decision", check),
    ("resourcecheck_check", ".check(ResourceCheck, string) -> Decision", check),
    ("decision_errored", ".errored(Decision) -> bool", |it| decided(it, |it| Value::Bool(it.error.is_some()))),
    ("decision_error", ".error(Decision) -> string", |it| {
        decided(it, |it| it.error.clone().unwrap_or_default().into())
    }),
    ("decision_allowed", ".allowed(Decision) -> bool", |it| decided(it, |it| Value::Bool(it.is_allowed))),
    ("decision_reason", ".reason(Decision) -> string", |it| decided(it, |it| it.reason.clone().into())),
];

pub(super) const SELECTOR_ROWS: &[Row] = &[
    ("authorizer_fieldselector", ".fieldSelector(ResourceCheck, string) -> ResourceCheck", |it| {
        set(it, |it| &mut it.field_selector)
    }),
    ("authorizer_labelselector", ".labelSelector(ResourceCheck, string) -> ResourceCheck", |it| {
        set(it, |it| &mut it.label_selector)
    }),
];

fn get<'v, 'a>(value: &'v Value<'a>) -> Result<&'v Authorizing<'a>, Box<Error>> {
    if let Value::Opaque(it) = value
        && let Opaque::Authorizing(it) = &**it
    {
        return Ok(it);
    }
    Err(Error::no_such_overload())
}

type Change = fn(&mut Authorizing<'_>, &str) -> Result<(), Box<Error>>;

fn change<'a>(args: &[Value<'a>], from: &Stage, change: Change) -> Evaluated<'a> {
    let mut it = get(&args[0])?.clone();
    match &args[1] {
        Value::String(text) if it.stage == *from => change(&mut it, text)?,
        _ => return Err(Error::no_such_overload()),
    }
    Ok(Opaque::from(it).into())
}

fn set<'a>(args: &[Value<'a>], field: fn(&mut Attributes) -> &mut String) -> Evaluated<'a> {
    let mut it = get(&args[0])?.clone();
    match &args[1] {
        Value::String(text) if it.stage == Stage::Resource => {
            *field(&mut it.asked) = text.to_string();
            Ok(Opaque::from(it).into())
        }
        _ => Err(Error::no_such_overload()),
    }
}

fn service_account<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let (Value::String(namespace), Value::String(name)) = (&args[1], &args[2]) else {
        return Err(Error::no_such_overload());
    };
    let mut it = get(&args[0])?.clone();
    if it.stage != Stage::Authorizer {
        return Err(Error::no_such_overload());
    }
    if !field::dns1123_subdomain(name).is_empty() {
        return Err(Error::other("Invalid service account name"));
    }
    if !field::dns1123_label(namespace).is_empty() {
        return Err(Error::other("Invalid service account namespace"));
    }
    it.asked.service_account = Some((namespace.to_string(), name.to_string()));
    Ok(Opaque::from(it).into())
}

fn check<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let it = get(&args[0])?;
    match &args[1] {
        Value::String(verb) if matches!(it.stage, Stage::Path | Stage::Resource) => {
            let asked = Attributes { verb: verb.to_string(), ..it.asked.clone() };
            let stage = Stage::Decision(it.by.decide(&asked));
            Ok(Opaque::from(Authorizing { by: it.by, asked, stage }).into())
        }
        _ => Err(Error::no_such_overload()),
    }
}

fn decided<'a>(args: &[Value<'a>], make: fn(&Decision) -> Value<'a>) -> Evaluated<'a> {
    match &get(&args[0])?.stage {
        Stage::Decision(it) => Ok(make(it)),
        _ => Err(Error::no_such_overload()),
    }
}
