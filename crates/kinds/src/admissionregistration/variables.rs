//! What a policy's expressions may refer to by name.

use corten_schema::Cursor;

use super::expressions::Checker;

/// Words of the expression language that name no variable.
const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

pub(super) fn validate(variables: Cursor<'_>, checker: &mut Checker) {
    for variable in variables.each() {
        let (name, expression) = (variable.at("name"), variable.at("expression"));
        if name.str().trim().is_empty() {
            name.missing("name is not specified");
        } else if !is_identifier(name.str()) {
            name.invalid("name is not a valid CEL identifier");
        }
        if expression.str().trim().is_empty() {
            expression.missing("expression is not specified");
        } else {
            checker.variable(name.str(), expression);
        }
    }
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
        && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
        && !RESERVED.contains(&name)
}
