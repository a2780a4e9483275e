//! What in the server's settings endangers leases.

use crate::{
    error::{Failure, Fault},
    link::Link,
};
use leasehold_core::{Durability, Finding, Severity, Verb};
use redis::{FromRedisValue, Value};
use std::collections::HashMap;

/// What one server says of itself.
struct Look {
    /// Which one, where there are several.
    server: Option<String>,
    info: Result<HashMap<String, String>, Failure>,
    settings: Result<HashMap<String, String>, Failure>,
}

/// Settings and conditions that endanger leases, of every server in charge, worst first.
pub(crate) async fn diagnose(link: &Link) -> Result<Vec<Finding>, Failure> {
    let looks = looks(link).await?;
    // One server that says nothing hides no other. If none says anything, there is nothing to find.
    if let [Look { info: Err(failure), server: None, .. }] = &looks[..]
        && !is_denied(failure)
    {
        return Err(failure.clone());
    }
    Ok(findings(link, looks))
}

/// Warns of what is worse than good to know, once, when a store is opened, and says what its contents survive.
pub(crate) async fn first(link: &Link) -> Durability {
    // A server of a Cluster that is down must not keep the others' leases from being used.
    let looking = tokio::time::timeout(link.config().connect_timeout, looks(link)).await;
    let Ok(Ok(looks)) = looking else { return Durability::Server };
    let weakest = looks.iter().map(Look::durability).min_by_key(|durability| strength(*durability));
    for finding in findings(link, looks) {
        if finding.severity > Severity::Info {
            tracing::warn!(target: Finding::LOG_TARGET, store = %link.address(), code = finding.code, "{}", finding.text);
        }
    }
    weakest.unwrap_or(Durability::Server)
}

async fn looks(link: &Link) -> Result<Vec<Look>, Failure> {
    let questions = [redis::cmd("INFO"), redis::cmd("CONFIG").arg("GET").arg("*").to_owned()];
    let looks = link.each(&questions).await?.into_iter().map(|answers| {
        let mut said = answers.said.into_iter();
        let mut next = || said.next().unwrap_or(Ok(Value::Nil));
        let info = next().map(|info| fields(&String::from_redis_value(info).unwrap_or_default()));
        let settings = next().map(|all| HashMap::from_redis_value(all).unwrap_or_default());
        Look { server: answers.server, info, settings }
    });
    Ok(looks.collect())
}

fn findings(link: &Link, looks: Vec<Look>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for look in looks {
        for mut finding in look.findings(link) {
            if let Some(server) = &look.server {
                finding.text = format!("{server}: {}", finding.text);
            }
            findings.push(finding);
        }
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

impl Look {
    fn findings(&self, link: &Link) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (command, unknown) in
            [("INFO", self.info.as_ref().err()), ("CONFIG GET", self.settings.as_ref().err())]
        {
            match unknown {
                Some(failure) if is_denied(failure) => findings.push(blind(command)),
                Some(failure) => {
                    findings.push(silent(failure.fault.clone(), link));
                    return findings;
                }
                None => {}
            }
        }
        let nothing = HashMap::new();
        let (info, settings) =
            (self.info.as_ref().unwrap_or(&nothing), self.settings.as_ref().unwrap_or(&nothing));
        findings.extend(judge(info, settings));
        findings
    }

    /// What is not known is not promised.
    fn durability(&self) -> Durability {
        let setting = |name: &str| self.settings.as_ref().ok()?.get(name).map(String::as_str);
        match (setting("appendonly"), setting("appendfsync")) {
            (Some("yes"), Some("always")) => Durability::PowerLoss,
            (Some("yes"), _) => Durability::ProcessCrash,
            _ => Durability::Server,
        }
    }
}

const fn strength(durability: Durability) -> u8 {
    match durability {
        Durability::PowerLoss => 2,
        Durability::ProcessCrash => 1,
        _ => 0,
    }
}

fn judge(info: &HashMap<String, String>, settings: &HashMap<String, String>) -> Vec<Finding> {
    let setting = |name: &str| settings.get(name).or_else(|| info.get(name)).map(String::as_str);
    let mut found = Vec::new();
    let mut add = |severity, code, text: String| found.push(Finding { severity, code, text });
    if let Some(policy) = setting("maxmemory_policy").or_else(|| setting("maxmemory-policy"))
        && policy != "noeviction"
    {
        let limited = setting("maxmemory").is_some_and(|limit| limit != "0");
        let severity = if limited { Severity::Danger } else { Severity::Warning };
        let mut text = format!(
            "maxmemory-policy is {policy}: at the memory limit the server removes keys of its own choice, leases and fence \
             counters among them, and two replicas may then hold one lease. "
        );
        text += if limited { "" } else { "There is no limit now. " };
        add(
            severity,
            "eviction",
            text + "Set maxmemory-policy to noeviction, or give leases a server of their own.",
        );
    }
    let appends = setting("appendonly").is_some_and(|on| on == "yes") || setting("aof_enabled") == Some("1");
    let saves = setting("save").is_none_or(|save| !save.is_empty());
    if !appends {
        let text = if saves {
            "The server keeps snapshots only: a restart forgets the leases and fence counters since the last one. Replicas \
             that live on repair the counters; set appendonly to yes so that none needs to be."
        } else {
            "The server keeps nothing on disk: a restart forgets all leases and fence counters. Replicas that live on \
             repair the counters they know; set appendonly to yes so that none is lost."
        };
        add(Severity::Warning, "no-persistence", text.to_owned());
    } else if setting("appendfsync").is_some_and(|sync| sync != "always") {
        let text = "appendfsync is not always: a loss of power may undo the last second, fences included. Replicas that \
                    live on repair the counters they know.";
        add(Severity::Info, "last-second", text.to_owned());
    }
    if let Some(timeout) = setting("timeout").and_then(|timeout| timeout.parse::<f64>().ok())
        && timeout > 0.0
        && timeout < 60.0
    {
        let text = format!(
            "The server closes connections that are idle for {timeout} s: the subscription of a crash witness is none of \
             them, but each renewal may have to connect first. Set timeout to 0 or above your ttl."
        );
        add(Severity::Info, "idle-timeout", text);
    }
    if setting("role") == Some("slave") {
        let text = "This server is a replica: it takes no writes. Name the primary, or its sentinels.";
        add(Severity::Danger, "replica", text.to_owned());
    }
    let replicas = setting("connected_slaves").and_then(|count| count.parse::<u32>().ok()).unwrap_or(0);
    if replicas > 0 && setting("min-replicas-to-write").is_none_or(|least| least == "0") {
        let text = "Replication is asynchronous: a replica that takes over may lack the last leases and fences. Fenced \
                    resources stay safe; set min-replicas-to-write and wait= in the address to narrow the gap.";
        add(Severity::Info, "failover-may-lose", text.to_owned());
    }
    found
}

fn blind(command: &str) -> Finding {
    Finding {
        severity: Severity::Info,
        code: "not-allowed-to-look",
        text: format!(
            "This user may not run {command}: eviction and persistence of the server were not checked."
        ),
    }
}

/// A server of a Cluster that does not answer. The leases whose slots it has are out of reach.
fn silent(fault: Fault, link: &Link) -> Finding {
    let error = fault.told(link.address(), Verb::Diagnose, None);
    let text =
        format!("This server could not be asked, and its leases cannot be renewed or acquired: {error}");
    Finding { severity: Severity::Danger, code: "unreachable", text }
}

fn is_denied(failure: &Failure) -> bool {
    let Fault::Redis(error) = &failure.fault else { return false };
    error.code().is_some_and(|code| matches!(code, "NOPERM" | "ERR"))
}

/// The `key:value` lines of INFO.
fn fields(info: &str) -> HashMap<String, String> {
    let pairs = info.lines().filter_map(|line| line.trim_end().split_once(':'));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(info: &str, settings: &[(&str, &str)]) -> Vec<&'static str> {
        let settings = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        judge(&fields(info), &settings).into_iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn a_server_that_may_forget_or_evict_is_told_and_a_careful_one_is_not() {
        let careful = [
            ("maxmemory-policy", "noeviction"),
            ("appendonly", "yes"),
            ("appendfsync", "always"),
            ("timeout", "0"),
        ];
        assert_eq!(codes("role:master\r\nconnected_slaves:0", &careful), [""; 0]);
        let careless = [
            ("maxmemory-policy", "allkeys-lru"),
            ("maxmemory", "100"),
            ("appendonly", "no"),
            ("save", ""),
            ("timeout", "5"),
        ];
        assert_eq!(codes("role:slave", &careless), ["eviction", "no-persistence", "idle-timeout", "replica"]);
        assert_eq!(
            codes("maxmemory_policy:volatile-ttl\r\naof_enabled:1\r\nconnected_slaves:1", &[]),
            ["eviction", "failover-may-lose"]
        );
    }
}
