//! The answers of the zone itself, after the specification of Kubernetes, 1.1, and after its usual server where that says
//! nothing.
//!
//! Nothing below the cluster's domain is ever asked elsewhere. A headless Service without ready endpoints has no records,
//! and so, as with CoreDNS, no name.

use std::net::IpAddr;

use crate::{
    Name, Query, Reading, Zone,
    address::{reversed, undashed},
    numbers::{
        A, AA, AAAA, ANY, AXFR, CNAME, HINFO, INTERNET, IXFR, NO_ERROR, NS, NX_DOMAIN, PTR, REFUSED, SERVER_FAILURE,
        SOA, SRV, TXT,
    },
    wire::{Owner, Section, Writer},
    zone::{Entry, Kind, Port},
};

/// How long clients may keep a record, in seconds: what kubeadm sets.
const TTL: u32 = 30;
/// How long they may keep that there is none. Short: what is asked for too early is often made the moment after.
const NEGATIVE_TTL: u32 = 5;
const VERSION_TTL: u32 = 28800;
const VERSION: &[u8] = b"1.1.0";
/// Aliases of aliases.
const ALIASES_MAX: usize = 8;

/// What became of a query.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// The answer has been written.
    Answered,
    /// The name is not the cluster's: ask elsewhere.
    Elsewhere,
    /// The name is an alias, and so may be what it stands for; the last one is not the cluster's. See [`chased`].
    Alias(Vec<Name>),
}

/// Answers from the zone. Of several addresses another comes first with each `turn`.
pub fn answer(query: &Query<'_>, zone: &Zone, turn: usize, limit: usize, out: &mut Vec<u8>) -> Outcome {
    let question = &query.question;
    if query.class != INTERNET || matches!(question.qtype, AXFR | IXFR) {
        fail(query, REFUSED, limit, out);
        return Outcome::Answered;
    }
    let Some(skip) = question.name.before(&zone.domain) else {
        return outside(query, zone, limit, out);
    };
    if !zone.is_complete {
        fail(query, SERVER_FAILURE, limit, out);
        return Outcome::Answered;
    }
    let mut reply = Reply { writer: Writer::new(query, limit, out), zone, qtype: question.qtype, turn };
    reply.writer.set(AA);
    let mut aliases: Vec<Name> = Vec::new();
    let mut name = question.name;
    let code = loop {
        let owner = if aliases.is_empty() { Owner::Question } else { Owner::Of(&name) };
        match reply.look_up(&name, owner) {
            Step::Done(code) => break code,
            Step::Alias(target) if aliases.len() == ALIASES_MAX || aliases.contains(&*target) => break SERVER_FAILURE,
            Step::Alias(target) => {
                reply.writer.record(Section::Answer, owner, CNAME, TTL, |it| it.extend_from_slice(target.as_wire()));
                aliases.push(*target);
                if target.before(&zone.domain).is_none() {
                    return Outcome::Alias(aliases);
                }
                name = *target;
            }
        }
    };
    let Reply { mut writer, .. } = reply;
    if code != SERVER_FAILURE && (code == NX_DOMAIN || writer.is_bare(aliases.len())) {
        let owner = Owner::Ending(skip);
        writer.record(Section::Authority, owner, SOA, NEGATIVE_TTL, |it| authority(zone, it));
    }
    writer.code(code);
    writer.finish();
    Outcome::Answered
}

/// Answers with a code and nothing else.
pub fn fail(query: &Query<'_>, code: u16, limit: usize, out: &mut Vec<u8>) {
    let mut writer = Writer::new(query, limit, out);
    writer.code(code);
    writer.finish();
}

/// Answers a question for an alias, of what [`Outcome::Alias`] gave, with what was learned elsewhere of the last one.
pub fn chased(query: &Query<'_>, aliases: &[Name], learned: &Reading, age: u32, limit: usize, out: &mut Vec<u8>) {
    let mut writer = Writer::new(query, limit, out);
    writer.set(AA);
    let owners = [Owner::Question].into_iter().chain(aliases.iter().map(Owner::Of));
    for (owner, target) in owners.zip(aliases) {
        writer.record(Section::Answer, owner, CNAME, TTL, |it| it.extend_from_slice(target.as_wire()));
    }
    learned.copy(&mut writer, age);
    writer.code(learned.code);
    writer.finish();
}

/// Names of others, of which a few are answered here nevertheless.
fn outside(query: &Query<'_>, zone: &Zone, limit: usize, out: &mut Vec<u8>) -> Outcome {
    let question = &query.question;
    if question.qtype == ANY {
        let mut writer = Writer::new(query, limit, out);
        minimal(&mut writer, Owner::Question);
        writer.finish();
        return Outcome::Answered;
    }
    let Some(address) = reversed(&question.name) else { return Outcome::Elsewhere };
    let mut names = zone.names(address).peekable();
    if names.peek().is_none() {
        return Outcome::Elsewhere;
    }
    let mut writer = Writer::new(query, limit, out);
    writer.set(AA);
    if question.qtype == PTR {
        // As in CoreDNS: an address of a Service is called after it, whoever else has it.
        let is_service = |it: &&str| it.split('.').count() == 3;
        let service = zone.names(address).find(is_service);
        let all = names.filter(|it| service.is_none_or(|service| service == *it));
        for name in all.filter_map(|it| zone.domain.below(it.split('.').map(str::as_bytes))) {
            writer.record(Section::Answer, Owner::Question, PTR, TTL, |it| it.extend_from_slice(name.as_wire()));
        }
    }
    writer.finish();
    Outcome::Answered
}

/// RFC 8482: who asks for everything gets as little as there can be.
fn minimal(writer: &mut Writer<'_>, owner: Owner<'_>) {
    writer.record(Section::Answer, owner, HINFO, VERSION_TTL, |it| it.extend_from_slice(b"\x07RFC8482\x00"));
}

fn authority(zone: &Zone, out: &mut Vec<u8>) {
    for labels in [&[&b"ns"[..], b"dns"][..], &[b"hostmaster"]] {
        if let Some(name) = zone.domain.below(labels.iter().copied()) {
            out.extend_from_slice(name.as_wire());
        }
    }
    for number in [zone.serial, 7200, 1800, 86400, NEGATIVE_TTL] {
        out.extend_from_slice(&number.to_be_bytes());
    }
}

enum Step {
    Done(u16),
    Alias(Box<Name>),
}

const HERE: Step = Step::Done(NO_ERROR);
const NOWHERE: Step = Step::Done(NX_DOMAIN);

/// An answer in the making.
struct Reply<'a> {
    writer: Writer<'a>,
    zone: &'a Zone,
    qtype: u16,
    turn: usize,
}

impl Reply<'_> {
    /// Writes the records of a name of the zone.
    fn look_up(&mut self, name: &Name, owner: Owner<'_>) -> Step {
        // No name of a cluster has more labels before the domain, and one more shows that it has.
        const LABELS_MAX: usize = 6;
        let mut labels = [&b""[..]; LABELS_MAX + 1];
        let n_domain = self.zone.domain.labels().count();
        let n = name.labels().count() - n_domain;
        if n > LABELS_MAX {
            return NOWHERE;
        }
        for (place, label) in labels.iter_mut().zip(name.labels().take(n)) {
            *place = label;
        }
        match &labels[..n] {
            [] => self.apex(owner),
            [b"svc" | b"pod" | b"dns"] => self.empty(owner),
            [b"dns-version"] => self.version(owner),
            [b"ns", b"dns"] => self.server(owner),
            [above @ .., namespace, kind @ (b"svc" | b"pod")] => {
                let is_pod = *kind == b"pod";
                match above {
                    _ if !self.zone.has_namespace(namespace) => NOWHERE,
                    [] => self.empty(owner),
                    [label] if is_pod => self.pod(label, owner),
                    [above @ .., service] if !is_pod => match self.zone.service(namespace, service) {
                        Some(entry) => self.below_service(entry, above, [service, namespace], owner),
                        None => NOWHERE,
                    },
                    _ => NOWHERE,
                }
            }
            _ => NOWHERE,
        }
    }

    fn is_any(&mut self, owner: Owner<'_>) -> bool {
        if self.qtype == ANY {
            minimal(&mut self.writer, owner);
        }
        self.qtype == ANY
    }

    fn empty(&mut self, owner: Owner<'_>) -> Step {
        self.is_any(owner);
        HERE
    }

    fn apex(&mut self, owner: Owner<'_>) -> Step {
        let zone = self.zone;
        match self.qtype {
            SOA => self.writer.record(Section::Answer, owner, SOA, NEGATIVE_TTL, |it| authority(zone, it)),
            NS => {
                if let Some(name) = zone.domain.below([&b"ns"[..], b"dns"]) {
                    self.writer.record(Section::Answer, owner, NS, TTL, |it| it.extend_from_slice(name.as_wire()));
                    self.glue(&name, &self.zone.server());
                }
            }
            _ => drop(self.is_any(owner)),
        }
        HERE
    }

    fn version(&mut self, owner: Owner<'_>) -> Step {
        if self.qtype == TXT {
            self.writer.record(Section::Answer, owner, TXT, VERSION_TTL, |it| {
                it.push(u8::try_from(VERSION.len()).expect("a short text"));
                it.extend_from_slice(VERSION);
            });
        }
        self.empty_unless(TXT, owner)
    }

    fn empty_unless(&mut self, answered: u16, owner: Owner<'_>) -> Step {
        if self.qtype == answered { HERE } else { self.empty(owner) }
    }

    /// The name of this server.
    fn server(&mut self, owner: Owner<'_>) -> Step {
        let addresses = self.zone.server();
        if addresses.is_empty() {
            return NOWHERE;
        }
        self.addresses(&addresses, owner)
    }

    fn pod(&mut self, label: &[u8], owner: Owner<'_>) -> Step {
        match undashed(label) {
            Some(address) => self.addresses(&[address], owner),
            None => NOWHERE,
        }
    }

    /// A Service's own name, and those below it; `service` is its name and namespace.
    fn below_service(&mut self, entry: &Entry, above: &[&[u8]], service: [&[u8]; 2], owner: Owner<'_>) -> Step {
        match (above, &*entry.kind) {
            ([], Kind::Nothing) => NOWHERE,
            ([], Kind::Alias(_)) if matches!(self.qtype, ANY) => self.empty(owner),
            ([], Kind::Alias(target)) if self.qtype == CNAME => {
                self.writer.record(Section::Answer, owner, CNAME, TTL, |it| it.extend_from_slice(target.as_wire()));
                HERE
            }
            ([], Kind::Alias(target)) => Step::Alias(target.clone()),
            ([], Kind::Address { addresses, .. } | Kind::Headless { addresses, .. }) if self.qtype != SRV => {
                self.addresses(addresses, owner)
            }
            // As in CoreDNS: by its own name all ports are found.
            ([], _) if entry.has(|_| true) => self.services(entry, service, owner, |_| true),
            ([], _) => HERE,
            ([port, protocol], _) => match (port.strip_prefix(b"_"), protocol.strip_prefix(b"_")) {
                (Some(port), Some(protocol)) => self.services(entry, service, owner, |it| {
                    it.name.as_bytes() == port && it.protocol.as_bytes() == protocol && !port.is_empty()
                }),
                _ => NOWHERE,
            },
            ([label], _) => match label.strip_prefix(b"_") {
                // Between a port and its Service stands an empty name.
                Some(protocol) if entry.has(|it| it.protocol.as_bytes() == protocol && !it.name.is_empty()) => {
                    self.empty(owner)
                }
                Some(_) => NOWHERE,
                None => match std::str::from_utf8(label).ok().and_then(|it| entry.host(it)) {
                    Some(addresses) => self.addresses(addresses, owner),
                    None => NOWHERE,
                },
            },
            _ => NOWHERE,
        }
    }

    fn addresses(&mut self, addresses: &[IpAddr], owner: Owner<'_>) -> Step {
        if self.is_any(owner) {
            return HERE;
        }
        let n = addresses.len().max(1);
        let is_wanted = |it: &&IpAddr| if it.is_ipv4() { self.qtype == A } else { self.qtype == AAAA };
        let from = self.turn % n;
        let (before, after) = addresses.split_at(from.min(addresses.len()));
        for address in after.iter().chain(before).filter(is_wanted) {
            write_address(&mut self.writer, Section::Answer, owner, *address);
            if self.writer.is_full() {
                break;
            }
        }
        HERE
    }

    /// The ports of a Service that are asked for, and where they are found.
    fn services(
        &mut self,
        entry: &Entry,
        service: [&[u8]; 2],
        owner: Owner<'_>,
        wanted: impl Fn(&Port) -> bool,
    ) -> Step {
        if !entry.has(&wanted) {
            return NOWHERE;
        }
        if self.qtype != SRV {
            return self.empty(owner);
        }
        let Some(own) = self.zone.domain.below([service[0], service[1], b"svc"]) else { return NOWHERE };
        let mut glue: Vec<(Name, &[IpAddr])> = Vec::new();
        match &*entry.kind {
            Kind::Address { addresses, ports } => {
                let found: Vec<&Port> = ports.iter().filter(|it| wanted(it)).collect();
                let weight = weight(found.len() * addresses.len());
                for port in found {
                    write_service(&mut self.writer, owner, port.number, weight, &own);
                }
                glue.push((own, addresses));
            }
            Kind::Headless { ports, .. } => {
                let found: Vec<&(Port, Box<str>)> = ports.iter().filter(|it| wanted(&it.0)).collect();
                let endpoints = |host: &str| entry.host(host).unwrap_or_default();
                let weight = weight(found.iter().map(|it| endpoints(&it.1).len()).sum());
                for (port, host) in found {
                    let Some(name) = own.below([host.as_bytes()]) else { continue };
                    write_service(&mut self.writer, owner, port.number, weight, &name);
                    if self.writer.is_full() {
                        break;
                    }
                    if glue.last().is_none_or(|it| it.0 != name) {
                        glue.push((name, endpoints(host)));
                    }
                }
            }
            Kind::Nothing | Kind::Alias(_) => return NOWHERE,
        }
        glue.sort_unstable();
        glue.dedup();
        for (name, addresses) in glue {
            self.glue(&name, addresses);
        }
        HERE
    }

    fn glue(&mut self, name: &Name, addresses: &[IpAddr]) {
        for address in addresses {
            write_address(&mut self.writer, Section::Additional, Owner::Of(name), *address);
            if self.writer.is_full() {
                break;
            }
        }
    }
}

/// The weight of one of `n` records of SRV: they share a hundred evenly, as CoreDNS's do.
fn weight(n: usize) -> u16 {
    u16::try_from(100 / n.max(1)).unwrap_or(1).max(1)
}

fn write_service(writer: &mut Writer<'_>, owner: Owner<'_>, port: u16, weight: u16, target: &Name) {
    writer.record(Section::Answer, owner, SRV, TTL, |it| {
        for number in [0, weight, port] {
            it.extend_from_slice(&number.to_be_bytes());
        }
        it.extend_from_slice(target.as_wire());
    });
}

fn write_address(writer: &mut Writer<'_>, section: Section, owner: Owner<'_>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => writer.record(section, owner, A, TTL, |it| it.extend_from_slice(&address.octets())),
        IpAddr::V6(address) => writer.record(section, owner, AAAA, TTL, |it| it.extend_from_slice(&address.octets())),
    }
}

impl Entry {
    fn has(&self, wanted: impl Fn(&Port) -> bool) -> bool {
        match &*self.kind {
            Kind::Address { ports, .. } => ports.iter().any(wanted),
            Kind::Headless { ports, .. } => ports.iter().any(|it| wanted(&it.0)),
            Kind::Nothing | Kind::Alias(_) => false,
        }
    }
}

impl Zone {
    /// Where the cluster's name server is.
    fn server(&self) -> Vec<IpAddr> {
        match self.service(b"kube-system", b"kube-dns").map(|it| &*it.kind) {
            Some(Kind::Address { addresses, .. } | Kind::Headless { addresses, .. }) => addresses.to_vec(),
            _ => Vec::new(),
        }
    }
}
