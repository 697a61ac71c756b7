//! What a ValidatingAdmissionPolicy's expressions would meet in the objects it matches (upstream's `TypeChecker`): an expression that
//! names a field which a kind does not have is a warning in the policy's status, and changes nothing of what the policy does.

use corten_cel::{DeclType, Env, Type};
use corten_validation::{
    admission_expressions::{typed_env, with_variables},
    read::{items, text},
};
use serde::Serialize;
use serde_json::Value;

/// Of one rule so many types are checked.
const TYPES_OF_A_RULE_MAX: usize = 10;
/// Of expressions, each counted once for each type: what is beyond is not checked. Upstream has no bound.
const CHECKED_BYTES_MAX: usize = 256 * 1024;
/// Of all warnings: each complaint repeats its line of the expression.
const WARNINGS_BYTES_MAX: usize = 256 * 1024;
/// Of one expression for one type.
const ISSUES_MAX: usize = 10;

/// A resource as a rule names it.
#[derive(Clone, Copy, Debug)]
pub struct RuleResource<'p> {
    /// Empty: upstream looks in every group.
    pub group: &'p str,
    pub version: &'p str,
    pub plural: &'p str,
}

/// A kind that a rule matches, with the schema of its objects.
#[derive(Clone, Debug)]
pub struct Matched {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub declared: DeclType,
}

/// What is wrong with an expression, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExpressionWarning {
    pub field_ref: String,
    pub warning: String,
}

/// The types that a policy is checked against, in the order of upstream's warnings. A rule with wildcards has none.
pub fn types_to_check(policy: &Value, kinds_for: impl Fn(RuleResource<'_>) -> Vec<Matched>) -> Vec<Matched> {
    let mut types: Vec<Matched> = Vec::new();
    for rule in items(&policy["spec"], "/matchConstraints/resourceRules") {
        let (Some(groups), Some(versions)) =
            (without_wildcard(rule, "/apiGroups"), without_wildcard(rule, "/apiVersions"))
        else {
            continue;
        };
        let mut plurals: Vec<&str> = texts(rule, "/resources").filter(|it| !it.contains(['*', '/'])).collect();
        plurals.sort_unstable();
        let names = groups.iter().flat_map(|group| {
            let plurals = &plurals;
            versions
                .iter()
                .flat_map(move |version| plurals.iter().map(move |plural| RuleResource { group, version, plural }))
        });
        let mut n_of_rule = 0;
        for found in names.flat_map(&kinds_for) {
            if !types.iter().any(|it| it.place() == found.place()) {
                types.push(found);
            }
            n_of_rule += 1;
            if n_of_rule == TYPES_OF_A_RULE_MAX {
                types.sort_by(|a, b| a.place().cmp(&b.place()));
                return types;
            }
        }
    }
    types.sort_by(|a, b| a.place().cmp(&b.place()));
    types
}

/// Checks validations and their messages. `params` is the type of the parameters, where the policy has some of a known kind.
pub fn warnings(policy: &Value, types: &[Matched], params: Option<&DeclType>) -> Vec<ExpressionWarning> {
    let spec = &policy["spec"];
    let variables = items(spec, "/variables");
    let envs: Vec<(&Matched, Env)> = types.iter().map(|it| (it, env_of(it, params, variables))).collect();
    let (mut room, mut unsaid) = (CHECKED_BYTES_MAX, WARNINGS_BYTES_MAX);
    let mut warnings = Vec::new();
    for (at, validation) in items(spec, "/validations").iter().enumerate() {
        for field in ["expression", "messageExpression"] {
            let Some(expression) = validation[field].as_str().filter(|it| !it.is_empty()) else { continue };
            let Some(left) = room.checked_sub(expression.len().saturating_mul(envs.len())) else { return warnings };
            room = left;
            let said: Vec<String> = envs.iter().filter_map(|(of, env)| of.complaint(env, expression)).collect();
            if said.is_empty() {
                continue;
            }
            let warning = said.join("\n");
            let Some(left) = unsaid.checked_sub(warning.len()) else { return warnings };
            unsaid = left;
            warnings.push(ExpressionWarning { field_ref: format!("spec.validations[{at}].{field}"), warning });
        }
    }
    warnings
}

impl Matched {
    fn place(&self) -> (&str, &str, &str) {
        (&self.group, &self.version, &self.kind)
    }

    /// As `TypeCheckingResult.String`, its line break at the end, too.
    fn complaint(&self, env: &Env, expression: &str) -> Option<String> {
        let mut issues = env.check(expression).err()?;
        issues.issues.truncate(ISSUES_MAX);
        Some(format!("{}/{}, Kind={}: {issues}\n", self.group, self.version, self.kind))
    }
}

fn env_of(of: &Matched, params: Option<&DeclType>, variables: &[Value]) -> Env {
    let mut env = typed_env(of.declared.clone(), params.cloned());
    let mut types: Vec<(String, Type)> = Vec::new();
    for variable in variables {
        // One that does not compile may be anything.
        let of = env.check(text(variable, "/expression")).map_or(Type::Dyn, |it| it.result_type());
        types.push((text(variable, "/name").to_owned(), of));
        env = with_variables(env, &types);
    }
    env
}

/// Sorted; `None` where one is a wildcard.
fn without_wildcard<'r>(rule: &'r Value, list: &str) -> Option<Vec<&'r str>> {
    let mut texts: Vec<&str> = texts(rule, list).collect();
    texts.sort_unstable();
    (!texts.iter().any(|it| it.contains('*'))).then_some(texts)
}

fn texts<'r>(rule: &'r Value, list: &str) -> impl Iterator<Item = &'r str> {
    items(rule, list).iter().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn matched(group: &str, version: &str, kind: &str) -> Matched {
        let spec = DeclType::object("spec", [("replicas", DeclType::INT, false)]);
        let declared = DeclType::object(kind, [("spec", spec, false)]);
        Matched { group: group.into(), version: version.into(), kind: kind.into(), declared }
    }

    fn policy(rules: &Value, validations: &Value) -> Value {
        json!({"spec": {"matchConstraints": {"resourceRules": rules}, "validations": validations,
            "variables": [{"name": "n", "expression": "object.spec.replicas"}, {"name": "m", "expression": "object.nothing"}]}})
    }

    #[test]
    fn each_type_is_named_with_what_it_lacks() {
        let policy = policy(
            &json!([]),
            &json!([
                {"expression": "object.replicas > 1", "messageExpression": "string(variables.n) + string(variables.m)"},
                {"expression": "variables.n > 'a'"},
                {"expression": "object.spec.replicas > 1 && authorizer.group('').resource('pods').check('get').allowed()"},
                {"expression": "object.spec.replicas > params.spec.replicas"},
            ]),
        );
        let types = [matched("", "v1", "Pod"), matched("apps", "v1", "Deployment")];
        let found = warnings(&policy, &types, None);
        let fields: Vec<&str> = found.iter().map(|it| &*it.field_ref).collect();
        assert_eq!(
            fields,
            ["spec.validations[0].expression", "spec.validations[1].expression", "spec.validations[3].expression"]
        );
        let lacks = "ERROR: <input>:1:7: undefined field 'replicas'\n | object.replicas > 1\n | ......^\n";
        assert_eq!(found[0].warning, format!("/v1, Kind=Pod: {lacks}\napps/v1, Kind=Deployment: {lacks}"));
        assert!(
            found[1].warning.contains("found no matching overload for '_>_' applied to '(int, string)'"),
            "{found:?}"
        );
        assert!(found[2].warning.contains("undeclared reference to 'params'"), "{found:?}");
        let params = matched("", "v1", "P").declared;
        assert_eq!(warnings(&policy, &types, Some(&params)).len(), 2);
        assert!(warnings(&policy, &[], None).is_empty());
    }

    #[test]
    fn what_a_rule_names_is_looked_for_and_wildcards_are_not() {
        let rule = |groups: &[&str], versions: &[&str], resources: &[&str]| json!({"apiGroups": groups, "apiVersions": versions, "resources": resources});
        let kinds_for = |it: RuleResource<'_>| match it.plural {
            "gone" => Vec::new(),
            plural => vec![matched(it.group, it.version, plural)],
        };
        let names = |rules: Value| {
            let types = types_to_check(&policy(&rules, &json!([])), kinds_for);
            types.iter().map(|it| format!("{}/{}/{}", it.group, it.version, it.kind)).collect::<Vec<_>>()
        };
        let two =
            json!([rule(&["b", "a"], &["v1"], &["y", "x", "*", "y/status", "gone"]), rule(&["a"], &["v1"], &["x"])]);
        assert_eq!(names(two), ["a/v1/x", "a/v1/y", "b/v1/x", "b/v1/y"]);
        assert!(names(json!([rule(&["*"], &["v1"], &["x"]), rule(&["a"], &["*"], &["x"])])).is_empty());
        let many: Vec<String> = (0..20).map(|it| format!("r{it:02}")).collect();
        let many: Vec<&str> = many.iter().map(|it| &**it).collect();
        assert_eq!(names(json!([rule(&["a"], &["v1"], &many)])).len(), TYPES_OF_A_RULE_MAX);
    }

    #[test]
    fn a_policy_of_megabytes_is_checked_as_far_as_there_is_room() {
        let expression = format!("object.replicas > 1 || '{}' == ''", "x".repeat(4000));
        let validations: Vec<Value> = (0..500).map(|_| json!({"expression": expression})).collect();
        let found = warnings(&policy(&json!([]), &json!(validations)), &[matched("", "v1", "Pod")], None);
        let size: usize = found.iter().map(|it| it.warning.len()).sum();
        assert!(found.len() > 10 && size <= WARNINGS_BYTES_MAX, "{} of {size} bytes", found.len());
        let many = vec!["object.x"; 20_000].join(" || ");
        let found = warnings(&policy(&json!([]), &json!([{"expression": many}])), &[matched("", "v1", "Pod")], None);
        let lengths: Vec<usize> = found.iter().map(|it| it.warning.len()).collect();
        assert!(matches!(lengths[..], [one] if (1..=WARNINGS_BYTES_MAX).contains(&one)), "{lengths:?}");
    }
}
