//! When certificates end, as kubeadm shows it, and what is being replaced.

use std::{
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::Result;
use corten_meta::Time;
use corten_pki::rotation::{self, CertificateInfo, Rotating};
use serde::Serialize;

use super::Keys;
use crate::why::duration::duration;
use corten_console::output::{self, Format};

/// Somebody must act: as of `corten why`.
const BLOCKED: u8 = 4;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    api_version: &'static str,
    kind: &'static str,
    certificates: Vec<Row>,
    certificate_authorities: Vec<Row>,
    /// Is the authority of before still trusted?
    rotating_authority: bool,
    rotating_token_key: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
    begins: Time,
    expires: Time,
    residual_seconds: i64,
    /// `ca`, `ca-old`, `unknown`.
    #[serde(skip_serializing_if = "str::is_empty")]
    certificate_authority: String,
    /// `Valid`, `Expired`, `NotYetValid`.
    state: &'static str,
}

impl Row {
    fn of(listed: CertificateInfo, now: SystemTime) -> Self {
        let state = match () {
            () if listed.start > now => "NotYetValid",
            () if listed.end <= now => "Expired",
            () => "Valid",
        };
        Self {
            begins: time(listed.start),
            expires: time(listed.end),
            residual_seconds: seconds(listed.end) - seconds(now),
            name: listed.name,
            certificate_authority: listed.signer,
            state,
        }
    }

    fn left(&self) -> String {
        match self.state {
            "Expired" => "expired".into(),
            "NotYetValid" => format!("not valid before {}", self.begins.whole_seconds()),
            _ => duration(Duration::from_secs(self.residual_seconds.try_into().unwrap_or_default())),
        }
    }
}

fn seconds(time: SystemTime) -> i64 {
    i64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()).unwrap_or(i64::MAX)
}

fn time(time: SystemTime) -> Time {
    Time::from_unix_seconds(seconds(time))
}

pub(super) fn run(keys: &Keys, format: Format) -> Result<ExitCode> {
    let Rotating { authority, token_key } = rotation::state(&keys.dir)?;
    let now = SystemTime::now();
    let listed = rotation::list(&keys.dir, &keys.kubelet())?;
    let (authorities, certificates): (Vec<CertificateInfo>, Vec<CertificateInfo>) =
        listed.into_iter().partition(|it| it.is_authority);
    let rows = |all: Vec<CertificateInfo>| all.into_iter().map(|it| Row::of(it, now)).collect();
    let report = Report {
        api_version: "corten.dev/v1",
        kind: "Certificates",
        certificates: rows(certificates),
        certificate_authorities: rows(authorities),
        rotating_authority: authority,
        rotating_token_key: token_key,
    };
    match format {
        Format::Json => output::json(&report)?,
        Format::Text => output::text(&text(&report))?,
    }
    let all = || report.certificates.iter().chain(&report.certificate_authorities);
    Ok(if all().all(|it| it.state == "Valid") { ExitCode::SUCCESS } else { ExitCode::from(BLOCKED) })
}

fn text(report: &Report) -> String {
    let mut text = table("CERTIFICATE", &report.certificates) + "\n";
    text += &table("CERTIFICATE AUTHORITY", &report.certificate_authorities);
    let notes = [
        (report.rotating_authority, "the authority of before, ca-old", "rotate-ca"),
        (report.rotating_token_key, "the key of tokens of before", "rotate-token-key"),
    ];
    for (is_rotating, what, verb) in notes {
        if is_rotating {
            text += &format!("\n{what}, is still trusted; `corten certs {verb} --drop-old` ends that\n");
        }
    }
    text
}

fn table(title: &str, rows: &[Row]) -> String {
    let mut lines = vec![[title.to_owned(), "EXPIRES".into(), "RESIDUAL TIME".into(), "SIGNED BY".into()]];
    lines.extend(rows.iter().map(|it| {
        [it.name.clone(), it.expires.whole_seconds().to_string(), it.left(), it.certificate_authority.clone()]
    }));
    let mut widths = [0; 4];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.len());
        }
    }
    let show = |line: &[String; 4]| {
        let cells: Vec<String> = line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("   ").trim_end().to_owned() + "\n"
    };
    let is_signed = rows.iter().any(|it| !it.certificate_authority.is_empty());
    if !is_signed {
        lines[0][3].clear();
    }
    lines.iter().map(show).collect()
}
