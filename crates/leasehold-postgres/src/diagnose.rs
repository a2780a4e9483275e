//! What in the server's settings endangers leases.

use crate::{
    error::{Failure, Fault},
    link::{Again, Link, connect, drive},
    pinned::{backend, pinned},
};
use leasehold_core::{Finding, Severity};
use std::{collections::HashMap, time::Duration};
use tokio::time::timeout;

/// The longest wait for a session of the server, while it is looked whether a pooler stands before it.
const LONGEST_LOOK: Duration = Duration::from_millis(500);

/// Settings that are looked at.
const SETTINGS: &str = "SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'synchronous_commit', \
    'full_page_writes', 'synchronous_standby_names', 'default_transaction_read_only', 'idle_session_timeout', \
    'statement_timeout', 'max_connections', 'superuser_reserved_connections', 'server_encoding', 'server_version_num', \
    'server_version', 'tcp_keepalives_idle', 'transaction_timeout')";

/// Conditions, in the form of settings.
const CONDITIONS: &str = "SELECT 'recovery', pg_is_in_recovery()::text UNION ALL \
    SELECT 'clients', count(*)::text FROM pg_stat_activity WHERE datid IS NOT NULL UNION ALL \
    SELECT 'standbys', count(*)::text FROM pg_stat_replication";

/// Settings and conditions that endanger leases, worst first.
pub(crate) async fn diagnose(link: &Link) -> Result<Vec<Finding>, Failure> {
    let mut facts = HashMap::new();
    for sql in [SETTINGS, CONDITIONS] {
        for row in link.ask(sql, &[], Again::May).await? {
            let (name, value): (String, Option<String>) =
                (row.try_get(0).map_err(Fault::from)?, row.try_get(1).map_err(Fault::from)?);
            facts.insert(name, value.unwrap_or_default());
        }
    }
    let mut findings = judge(&facts);
    // Where there is no room for one more connection, that is what is to be told.
    if is_pooled(link).await.unwrap_or(false) {
        findings.push(Finding {
            severity: Severity::Warning,
            code: "pooler",
            text: format!("{}.", capitalized(crate::hearing::POOLED)),
        });
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Ok(findings)
}

/// Warns of what is worse than good to know, once, when a store is opened.
pub(crate) async fn warn(link: &Link) {
    for finding in diagnose(link).await.unwrap_or_default() {
        if finding.severity > Severity::Info {
            tracing::warn!(target: Finding::LOG_TARGET, store = %link.address(), code = finding.code, "{}", finding.text);
        }
    }
}

/// Whether a pooler changes servers between transactions.
async fn is_pooled(link: &Link) -> Result<bool, Failure> {
    let (ours, our_connection) = connect(link.config()).await?;
    let (other, other_connection) = connect(link.config()).await?;
    let driving = tokio::spawn(async { tokio::join!(drive(our_connection), drive(other_connection)) });
    let looked = async {
        let first = backend(&ours).await?;
        pinned(&ours, first, &other, LONGEST_LOOK).await
    };
    // Each wait for a session has a bound of its own; this one is for a server that stands still.
    let looked = timeout(link.config().response_timeout, looked).await;
    drop((ours, other));
    driving.await.ok();
    match looked {
        Ok(looked) => Ok(!looked?),
        Err(_) => Err(Fault::Silence(link.config().response_timeout).into()),
    }
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn judge(facts: &HashMap<String, String>) -> Vec<Finding> {
    let fact = |name: &str| facts.get(name).map(String::as_str);
    let number = |name: &str| fact(name).and_then(|value| value.parse::<i64>().ok());
    let mut found = Vec::new();
    let mut add = |severity, code, text: String| found.push(Finding { severity, code, text });
    if fact("recovery") == Some("true") {
        let text =
            "This server is a standby: it takes no writes. Name the primary, or all hosts in one address.";
        add(Severity::Danger, "standby", text.to_owned());
    }
    if fact("default_transaction_read_only") == Some("on") {
        let text = "default_transaction_read_only is on for this user: nothing can be acquired. Turn it off for the user or \
                    the database.";
        add(Severity::Danger, "read-only", text.to_owned());
    }
    if fact("fsync") == Some("off") {
        let text = "fsync is off: a crash of the machine may damage the whole database, leases and fence counters with it. \
                    Turn it on.";
        add(Severity::Danger, "fsync-off", text.to_owned());
    } else if fact("full_page_writes") == Some("off") {
        let text = "full_page_writes is off: a loss of power may damage pages of leases unless the file system forbids it. \
                    Turn it on.";
        add(Severity::Warning, "full-page-writes-off", text.to_owned());
    }
    if fact("synchronous_commit") == Some("off") {
        let text = "synchronous_commit is off for this user: a crash of the server forgets the last moments, and two replicas \
                    may then hold one lease until the first one's trust ends. Turn it on for the user that keeps leases.";
        add(Severity::Danger, "synchronous-commit-off", text.to_owned());
    }
    if number("standbys").is_some_and(|standbys| standbys > 0)
        && fact("synchronous_standby_names").is_none_or(str::is_empty)
    {
        let text = "Replication is asynchronous: a standby that is promoted may lack the last leases and fences. Replicas \
                    that live on repair the counters they know; set synchronous_standby_names so that none is lost.";
        add(Severity::Info, "failover-may-lose", text.to_owned());
    }
    if fact("server_encoding").is_some_and(|encoding| encoding != "UTF8") {
        let text = "The database is not encoded in UTF8: names with other letters than its own cannot be kept. Use a \
                    database in UTF8.";
        add(Severity::Warning, "encoding", text.to_owned());
    }
    for (name, code) in
        [("statement_timeout", "statement-timeout"), ("transaction_timeout", "transaction-timeout")]
    {
        if let Some(millis) = number(name).filter(|millis| (1..1_000).contains(millis)) {
            let text = format!(
                "{name} is {millis} ms for this user: renewals that take longer are undone. Set it to 0 or above a second \
                 for the user that keeps leases."
            );
            add(Severity::Warning, code, text);
        }
    }
    if let Some(millis) = number("idle_session_timeout").filter(|millis| (1..2_000).contains(millis)) {
        let text = format!(
            "idle_session_timeout is {millis} ms: the connection that listens, and that is the crash witness, is ended \
             between two of its signs of life. Set it to 0 or above ten seconds for the user that keeps leases."
        );
        add(Severity::Warning, "idle-session-timeout", text);
    }
    if let (Some(clients), Some(most)) = (number("clients"), number("max_connections")) {
        let usable = most - number("superuser_reserved_connections").unwrap_or(0);
        if usable > 0 && clients * 10 >= usable * 9 {
            let text = format!(
                "{clients} of {usable} connections are in use: soon a replica finds no place to renew or to acquire. Raise \
                 max_connections, or put a pooler in front of the other clients."
            );
            add(Severity::Warning, "connections-nearly-full", text);
        }
    }
    if number("tcp_keepalives_idle").is_some_and(|seconds| seconds == 0 || seconds > 600) {
        let text = "tcp_keepalives_idle is above ten minutes: the server learns late that a host has vanished, and a crash \
                    witness on it costs the ttl until then. Set it to 30 or so.";
        add(Severity::Info, "keepalives", text.to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(facts: &[(&str, &str)]) -> Vec<&'static str> {
        let facts = facts.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        judge(&facts).into_iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn a_server_that_may_forget_or_refuse_is_told_and_a_careful_one_is_not() {
        let careful = [
            ("recovery", "false"),
            ("fsync", "on"),
            ("full_page_writes", "on"),
            ("synchronous_commit", "on"),
            ("standbys", "1"),
            ("synchronous_standby_names", "*"),
            ("server_encoding", "UTF8"),
            ("statement_timeout", "0"),
            ("idle_session_timeout", "0"),
            ("clients", "10"),
            ("max_connections", "100"),
            ("tcp_keepalives_idle", "30"),
        ];
        assert_eq!(codes(&careful), [""; 0]);
        let careless = [
            ("recovery", "true"),
            ("default_transaction_read_only", "on"),
            ("fsync", "off"),
            ("synchronous_commit", "off"),
            ("standbys", "1"),
            ("server_encoding", "LATIN1"),
            ("statement_timeout", "100"),
            ("idle_session_timeout", "500"),
            ("clients", "91"),
            ("max_connections", "100"),
            ("superuser_reserved_connections", "3"),
            ("tcp_keepalives_idle", "7200"),
        ];
        assert_eq!(
            codes(&careless),
            [
                "standby",
                "read-only",
                "fsync-off",
                "synchronous-commit-off",
                "failover-may-lose",
                "encoding",
                "statement-timeout",
                "idle-session-timeout",
                "connections-nearly-full",
                "keepalives"
            ]
        );
    }
}
