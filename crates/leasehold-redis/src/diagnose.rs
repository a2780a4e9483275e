//! What in the server's settings endangers leases.

use crate::{error::Failure, link::Link};
use leasehold_core::{Finding, Severity};
use redis::{FromRedisValue, Value};
use std::collections::HashMap;

/// Settings and conditions that endanger leases, worst first.
pub(crate) async fn diagnose(link: &Link) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    let info = match link.ask(&redis::cmd("INFO")).await {
        Ok(info) => info,
        Err(failure) if is_denied(&failure) => {
            findings.push(blind("INFO"));
            Value::Nil
        }
        Err(failure) => return Err(failure),
    };
    let info = fields(&String::from_redis_value(info).unwrap_or_default());
    let settings = match link.ask(redis::cmd("CONFIG").arg("GET").arg("*")).await {
        Ok(settings) => HashMap::<String, String>::from_redis_value(settings).unwrap_or_default(),
        Err(failure) if is_denied(&failure) => {
            findings.push(blind("CONFIG GET"));
            HashMap::new()
        }
        Err(failure) => return Err(failure),
    };
    findings.extend(judge(&info, &settings));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Ok(findings)
}

/// Warns of what is worse than good to know, once, when a store is opened.
pub(crate) async fn warn(link: &Link) {
    for finding in diagnose(link).await.unwrap_or_default() {
        if finding.severity > Severity::Info {
            tracing::warn!(store = %link.address(), code = finding.code, "{}", finding.text);
        }
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

fn is_denied(failure: &Failure) -> bool {
    let crate::error::Fault::Redis(error) = &failure.fault else { return false };
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
