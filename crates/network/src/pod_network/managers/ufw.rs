//! ufw keeps its users' rules in files and loads them whenever it starts: it is told by its own command.

use std::fs;

use corten_machine::{Layout, MachineError, command};

use super::MARK;
use crate::pod_network::filters::{Chain, Filters};

/// Where ufw keeps them; those for IPv6 are the same.
const RULES: &str = "/etc/ufw/user.rules";
const HOOKS: [&str; 3] = ["forward", "input", "output"];

pub(super) fn keeps(filters: &Filters, chain: &Chain) -> bool {
    !chain.hook().is_empty() && filters.has_beside(chain, &format!("ufw-user-{}", chain.hook()))
}

/// What a packet of a Pod is for ufw, at one of the kernel's hooks.
fn rule(hook: &str) -> (&'static [&'static str], &'static str) {
    match hook {
        "forward" => (&["route"], "in"),
        "output" => (&[], "out"),
        _ => (&[], "in"),
    }
}

fn words<'a>(hook: &str, action: &[&'a str], bridge: &'a str) -> Vec<&'a str> {
    let (route, direction) = rule(hook);
    route.iter().chain(action).chain(&["allow", direction, "on", bridge]).copied().collect()
}

/// What opens a chain by hand.
pub(super) fn command(chain: &Chain, bridge: &str) -> String {
    match holds(&file(), chain.hook(), bridge) {
        Some(_) => "ufw reload".to_owned(),
        None => format!("ufw {}", words(chain.hook(), &[], bridge).join(" ")),
    }
}

/// Whose this rule is, where ufw's file holds it:
/// `### tuple ### route:allow any any 0.0.0.0/0 any 0.0.0.0/0 in_corten0 comment=636f7274656e`.
fn holds(file: &str, hook: &str, bridge: &str) -> Option<Holder> {
    let (route, direction) = rule(hook);
    let verb = if route.is_empty() { "allow" } else { "route:allow" };
    let (interface, mark) = (format!("{direction}_{bridge}"), format!("comment={}", hex(MARK)));
    let everything = [verb, "any", "any", "0.0.0.0/0", "any", "0.0.0.0/0", &*interface];
    file.lines().find_map(|line| {
        let words: Vec<&str> = line.strip_prefix("### tuple ### ")?.split_whitespace().collect();
        let comment = words.strip_prefix(&everything)?;
        Some(if comment == [&*mark] { Holder::Corten } else { Holder::Another })
    })
}

#[derive(Debug, PartialEq, Eq)]
enum Holder {
    Corten,
    Another,
}

fn hex(text: &str) -> String {
    text.bytes().map(|it| format!("{it:02x}")).collect()
}

/// True where the rule was not there.
pub(super) async fn open(chain: &Chain, layout: &Layout) -> Result<bool, MachineError> {
    if holds(&file(), chain.hook(), &layout.bridge).is_some() {
        // ufw is just loading it, or an administrator's own rule comes before it and stays what it is.
        return Ok(false);
    }
    let mut args = words(chain.hook(), &[], &layout.bridge);
    args.extend(["comment", MARK]);
    // Whoever else changes ufw is waited for. One that is cut off may leave in its file what the kernel does not have.
    command::run_while_it_advances("ufw", &args, command::bytes_read).await?;
    tracing::info!(chain = chain.name(), "ufw drops pods' traffic: it is let through by a rule of ufw's own");
    Ok(true)
}

pub(super) async fn withdraw(layout: &Layout) -> Result<(), MachineError> {
    let file = file();
    for hook in HOOKS.iter().filter(|it| holds(&file, it, &layout.bridge) == Some(Holder::Corten)) {
        let args = words(hook, &["delete"], &layout.bridge);
        command::run_while_it_advances("ufw", &args, command::bytes_read).await?;
    }
    Ok(())
}

fn file() -> String {
    fs::read_to_string(RULES).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hook_has_its_own_rule() {
        let said = |hook| words(hook, &["delete"], "corten0").join(" ");
        assert_eq!(said("forward"), "route delete allow in on corten0");
        assert_eq!(said("input"), "delete allow in on corten0");
        assert_eq!(said("output"), "delete allow out on corten0");
    }

    #[test]
    fn only_what_is_marked_is_cortens_own() {
        let file = "*filter\n### RULES ###\n\n\
            ### tuple ### allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in\n\
            -A ufw-user-input -p tcp --dport 22 -j ACCEPT\n\n\
            ### tuple ### route:allow any any 0.0.0.0/0 any 0.0.0.0/0 in_corten0 comment=636f7274656e\n\
            -A ufw-user-forward -i corten0 -j ACCEPT\n\n\
            ### tuple ### allow any any 0.0.0.0/0 any 0.0.0.0/0 in_corten0\n\
            -A ufw-user-input -i corten0 -j ACCEPT\n";
        assert_eq!(holds(file, "forward", "corten0"), Some(Holder::Corten));
        assert_eq!(holds(file, "input", "corten0"), Some(Holder::Another));
        assert_eq!(holds(file, "output", "corten0"), None);
        assert_eq!(holds(file, "forward", "corten1"), None);
    }
}
