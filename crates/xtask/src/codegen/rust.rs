//! Shapes in, Rust out: a file per group and version, and the index.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use serde_json::Value;

use super::{
    defaults, numbers, omitted,
    shapes::{Field, Shape, Type},
};

const GENERATED: &str = "Written by `cargo xtask codegen`; not to be edited.";

/// The types of `corten.dev` and of the metrics API, in files of their own.
const BY_HAND: [&str; 7] = [
    "dev.corten.v1.Decision",
    "dev.corten.v1.Journal",
    "dev.corten.v1.Step",
    "dev.corten.v1.Wait",
    "io.k8s.metrics.pkg.apis.metrics.v1beta1.ContainerMetrics",
    "io.k8s.metrics.pkg.apis.metrics.v1beta1.NodeMetrics",
    "io.k8s.metrics.pkg.apis.metrics.v1beta1.PodMetrics",
];

/// File names and their texts.
pub(super) fn write(types: &BTreeMap<String, Type>) -> BTreeMap<String, String> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for (name, of) in types {
        let text = texts.entry(module(name)).or_insert_with(|| {
            let package = name.rsplit_once('.').map_or("", |it| it.0);
            format!("//! The types of `{package}`. {GENERATED}\n\nuse super::build::*;\n")
        });
        write_type(text, name, of);
    }
    let modules: BTreeSet<String> = texts.keys().cloned().chain(BY_HAND.map(module)).collect();
    let mut files: BTreeMap<String, String> =
        texts.into_iter().map(|(module, text)| (format!("{module}.rs"), text)).collect();
    files.insert("index.rs".into(), index(types, &modules));
    files
}

fn index(types: &BTreeMap<String, Type>, modules: &BTreeSet<String>) -> String {
    let mut text = format!("//! All types, sorted by name. {GENERATED}\n\n");
    let modules: Vec<&str> = modules.iter().map(String::as_str).collect();
    let root = "crate";
    let _ = writeln!(text, "use super::{{{}}};\nuse {root}::Type;\n", modules.join(", "));
    text.push_str("/// Every type of the API.\npub static TYPES: &[&Type] = &[\n");
    let names: BTreeSet<&str> = types.keys().map(String::as_str).chain(BY_HAND).collect();
    for name in names {
        let _ = writeln!(text, "    &{}::{},", module(name), constant(name));
    }
    text.push_str("];\n");
    text
}

fn write_type(text: &mut String, name: &str, of: &Type) {
    let _ = writeln!(text, "\npub(super) static {}: Type = Type {{", constant(name));
    let _ = writeln!(text, "    name: {name:?},\n    atomic: {},\n    fields: &[", of.atomic);
    for (field_name, field) in &of.fields {
        let _ = writeln!(text, "        {}{},", row(name, field_name, field), number(name, field_name));
    }
    let _ = writeln!(text, "    ],\n    wire: &{:?},\n}};", wire(name, of));
}

/// Which fields have a number, by their place among all, in the order of these numbers.
fn wire(name: &str, of: &Type) -> Vec<usize> {
    let numbers = of.fields.keys().enumerate();
    let mut wire: Vec<_> = numbers.filter_map(|(at, it)| Some((numbers::of(name, it)?.path(), at))).collect();
    wire.sort();
    wire.into_iter().map(|it| it.1).collect()
}

fn row(of: &str, name: &str, field: &Field) -> String {
    let mut row = format!("field({name:?}, {})", shape(&field.shape));
    row.push_str(&default(of, name, field));
    if field.required {
        row.push_str(".required()");
    }
    if omitted::is(of, name, field) {
        row.push_str(".omitted()");
    }
    if let Some(merge) = merge(field) {
        let _ = write!(row, ".merged(&{merge})");
    }
    row
}

/// Numbers other than zero are policy: the kinds fill them in.
fn default(of: &str, name: &str, field: &Field) -> String {
    match defaults::of(of, name, field) {
        Ok(Some(Value::String(text))) if !text.is_empty() => format!(".or({text:?})"),
        Ok(Some(Value::Number(number))) if number.as_i64() != Some(0) => String::new(),
        Ok(Some(_)) => ".zero()".into(),
        Ok(None) | Err(_) => String::new(),
    }
}

fn number(of: &str, field: &str) -> String {
    let Some(number) = numbers::of(of, field) else { return String::new() };
    format!(".at(&{:?}){}", number.path(), if number.always { ".always()" } else { "" })
}

fn shape(of: &Shape) -> String {
    match of {
        Shape::Plain(name) => (*name).to_owned(),
        Shape::Object(name) => format!("Object(&super::{}::{})", module(name), constant(name)),
        Shape::List(of) => format!("List(&{})", shape(of)),
        Shape::Map(of) => format!("Map(&{})", shape(of)),
    }
}

/// `None` where the shape's own way is right: objects and maps merge, all else is replaced.
fn merge(Field { shape, rule, .. }: &Field) -> Option<String> {
    let merges = matches!(shape, Shape::Object(_) | Shape::Map(_));
    let apply = match rule.kind {
        "map" => format!("ByKeys(&{:?})", rule.keys),
        "set" => "Apply::Set".into(),
        "atomic" => "Atomic".into(),
        "granular" => "Apply::Deep".into(),
        _ if merges => "Apply::Deep".into(),
        _ => "Atomic".into(),
    };
    let has = |strategy: &str| rule.strategy.contains(&strategy);
    let patch = match shape {
        Shape::List(_) if has("merge") && rule.patch_key.is_empty() => "Patch::Set".into(),
        Shape::List(_) if has("merge") => format!("ByKey({:?})", rule.patch_key),
        _ if merges && !has("replace") => "Patch::Deep".into(),
        _ => "Replace".into(),
    };
    let own_way = if merges { ("Apply::Deep", "Patch::Deep") } else { ("Atomic", "Replace") };
    let retain_keys = has("retainKeys");
    if (&*apply, &*patch) == own_way && !retain_keys {
        return None;
    }
    Some(format!("Merge {{ apply: {apply}, patch: {patch}, retain_keys: {retain_keys} }}"))
}

/// `io.k8s.api.core.v1.Pod` lies in `core_v1`, `io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta` in `meta_v1`.
fn module(name: &str) -> String {
    let mut segments = name.rsplit('.').skip(1);
    let (version, group) = (segments.next().unwrap_or_default(), segments.next().unwrap_or_default());
    format!("{group}_{version}")
}

/// `PodSpec` is `POD_SPEC`, `CSIDriver` is `CSI_DRIVER`.
fn constant(name: &str) -> String {
    let name: Vec<char> = name.rsplit('.').next().unwrap_or_default().chars().collect();
    let mut constant = String::new();
    for (at, letter) in name.iter().enumerate() {
        let after_small = at > 0 && !name[at - 1].is_uppercase();
        let before_small = name.get(at + 1).is_some_and(|it| it.is_lowercase());
        if at > 0 && letter.is_uppercase() && (after_small || before_small) {
            constant.push('_');
        }
        constant.push(letter.to_ascii_uppercase());
    }
    constant
}
