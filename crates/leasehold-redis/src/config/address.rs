//! Reading an address. By hand, for the lists of hosts of Sentinel and Cluster are no URL of RFC 3986.

use super::{Config, Login, Node, Secret, Target, Tls, file, refuse};
use leasehold_core::StoreErrorKind;
use percent_encoding::percent_decode_str;
use std::time::Duration;

const KNOWN: &str = "db, prefix, protocol, timeout, response_timeout, wait, wait_timeout, witness_poll, ca, cert, key, \
                     password_env, password_file, sentinel_user, sentinel_password, sentinel_password_env, \
                     sentinel_password_file";

pub(super) fn parse(address: &str) -> Result<Config, StoreErrorKind> {
    // Nothing behind the scheme is ever shown: a password may stand anywhere in an address that is wrong.
    let Some((scheme, rest)) = address.split_once("://") else {
        return refuse("this is no address of a redis store: write redis://HOST:PORT/DB".into());
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut parts = Parts::default();
    for (key, value) in query.split('&').filter(|pair| !pair.is_empty()).map(pair) {
        parts.queries.push((key.to_owned(), decode(value)?));
    }
    let (kind, tls) = match scheme {
        "redis" | "valkey" => (Kind::Server, false),
        "rediss" | "valkeys" => (Kind::Server, true),
        "redis+unix" | "valkey+unix" | "unix" => (Kind::Socket, false),
        "redis+sentinel" | "valkey+sentinel" => (Kind::Sentinel, false),
        "rediss+sentinel" | "valkeys+sentinel" => (Kind::Sentinel, true),
        "redis+cluster" | "valkey+cluster" => (Kind::Cluster, false),
        "rediss+cluster" | "valkeys+cluster" => (Kind::Cluster, true),
        other => {
            return refuse(format!(
                "{other}:// is no scheme of a redis store; it knows redis, rediss, redis+unix, redis+sentinel, \
                 rediss+sentinel, redis+cluster and rediss+cluster"
            ));
        }
    };
    let target = parts.target(kind, rest)?;
    let mut config = Config::at(target);
    config.login = parts.login.clone();
    config.database = parts.database;
    if tls {
        config.tls = Some(Tls::default());
    }
    parts.apply(config)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Server,
    Socket,
    Sentinel,
    Cluster,
}

#[derive(Default)]
struct Parts {
    login: Login,
    database: i64,
    queries: Vec<(String, String)>,
}

impl Parts {
    fn target(&mut self, kind: Kind, rest: &str) -> Result<Target, StoreErrorKind> {
        if kind == Kind::Socket {
            let path = decode(rest)?;
            if !path.starts_with('/') {
                return refuse("a socket needs an absolute path: write redis+unix:///run/redis.sock".into());
            }
            return Ok(Target::Socket(path.into()));
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let hosts = match authority.rsplit_once('@') {
            Some((login, hosts)) => {
                let (user, password) = login.split_once(':').unwrap_or((login, ""));
                self.login.user = Some(decode(user)?).filter(|user| !user.is_empty());
                self.login.password = Some(decode(password)?).filter(|p| !p.is_empty()).map(Secret::new);
                hosts
            }
            None => authority,
        };
        let default_port = if kind == Kind::Sentinel { 26379 } else { 6379 };
        let nodes = hosts.split(',').map(|host| node(host, default_port)).collect::<Result<Vec<_>, _>>()?;
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        match (kind, segments.as_slice()) {
            (Kind::Server, []) => {}
            (Kind::Server, [number]) => self.database = database(number)?,
            (Kind::Sentinel, [master]) | (Kind::Sentinel, [master, _]) if !master.is_empty() => {
                if let Some(number) = segments.get(1) {
                    self.database = database(number)?;
                }
                let master = decode(master)?;
                return Ok(Target::Sentinel { sentinels: nodes, master, login: Login::default() });
            }
            (Kind::Sentinel, _) => {
                return refuse(
                    "sentinels need the name of the primary: write redis+sentinel://HOST,HOST/NAME".into(),
                );
            }
            (Kind::Cluster, [] | ["0"]) => return Ok(Target::Cluster(nodes)),
            (Kind::Cluster, _) => return refuse("a Cluster has no databases but 0".into()),
            (Kind::Server | Kind::Socket, _) => {
                return refuse("an address has at most one database number".into());
            }
        }
        match <[Node; 1]>::try_from(nodes) {
            Ok([node]) => Ok(Target::Server(node)),
            Err(_) => refuse("several hosts are redis+sentinel:// or redis+cluster://".into()),
        }
    }

    fn apply(self, mut config: Config) -> Result<Config, StoreErrorKind> {
        let mut wait = (None, Duration::from_millis(100));
        let (mut cert, mut key_file) = (None, None);
        for (key, value) in self.queries {
            match &*key {
                "db" => config.database = database(&value)?,
                "prefix" => config = config.with_prefix(&value)?,
                "protocol" => {
                    config.resp3 = match &*value {
                        "resp2" | "2" => false,
                        "resp3" | "3" => true,
                        _ => return refuse("protocol is resp2 or resp3".into()),
                    }
                }
                "timeout" => config = config.with_connect_timeout(duration(&key, &value)?)?,
                "response_timeout" => config = config.with_response_timeout(duration(&key, &value)?)?,
                "witness_poll" => config = config.with_witness_poll(duration(&key, &value)?)?,
                "wait" => {
                    let Ok(replicas) = value.parse() else {
                        return refuse("wait needs the number of replicas".into());
                    };
                    wait.0 = Some(replicas);
                }
                "wait_timeout" => wait.1 = duration(&key, &value)?,
                "ca" => {
                    let tls = tls(&mut config, &key)?;
                    tls.ca = Some(file(&key, &value)?);
                }
                "cert" => cert = Some(file(&key, &value)?),
                "key" => key_file = Some(text(&key, &value)?),
                "password_env" => config.login.password = Some(variable(&key, &value)?),
                "password_file" => config.login.password = Some(text(&key, &value)?),
                "sentinel_user" => sentinel(&mut config, &key)?.user = Some(value),
                "sentinel_password" => sentinel(&mut config, &key)?.password = Some(Secret::new(value)),
                "sentinel_password_env" => {
                    sentinel(&mut config, &key)?.password = Some(variable(&key, &value)?);
                }
                "sentinel_password_file" => sentinel(&mut config, &key)?.password = Some(text(&key, &value)?),
                _ => return refuse(format!("a redis store has no parameter {key:?}: it knows {KNOWN}")),
            }
        }
        match (cert, key_file) {
            (Some(cert), Some(key)) => tls(&mut config, "cert")?.client = Some((cert, key)),
            (None, None) => {}
            _ => return refuse("cert and key go together".into()),
        }
        if config.database != 0 && matches!(config.target, Target::Cluster(_)) {
            return refuse("a Cluster has no databases but 0".into());
        }
        match wait {
            (Some(replicas), timeout) => config.with_wait(replicas, timeout),
            (None, _) => Ok(config),
        }
    }
}

fn node(text: &str, default_port: u16) -> Result<Node, StoreErrorKind> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port.map(str::parse::<u16>) {
        None => default_port,
        Some(Ok(port)) if port > 0 => port,
        Some(_) => return refuse("a port is a number from 1 to 65535".into()),
    };
    if host.is_empty() {
        return refuse("the address names no host: write redis://HOST:PORT/DB".into());
    }
    Ok(Node { host: decode(host)?, port })
}

fn tls<'a>(config: &'a mut Config, key: &str) -> Result<&'a mut Tls, StoreErrorKind> {
    match &mut config.tls {
        Some(tls) => Ok(tls),
        None => refuse(format!("{key} needs an encrypted connection: write rediss://")),
    }
}

fn sentinel<'a>(config: &'a mut Config, key: &str) -> Result<&'a mut Login, StoreErrorKind> {
    match &mut config.target {
        Target::Sentinel { login, .. } => Ok(login),
        _ => refuse(format!("{key} is for redis+sentinel:// addresses")),
    }
}

fn database(text: &str) -> Result<i64, StoreErrorKind> {
    match text.parse::<u16>() {
        Ok(number) => Ok(number.into()),
        Err(_) => refuse("a database is a number, such as redis://HOST:PORT/0".into()),
    }
}

fn variable(key: &str, name: &str) -> Result<Secret, StoreErrorKind> {
    match std::env::var(name) {
        Ok(value) => Ok(Secret::new(value)),
        Err(_) => refuse(format!("{key}={name}: there is no such environment variable, or it is not UTF-8")),
    }
}

/// A file that holds one secret, perhaps with the line end of an editor behind it.
fn text(key: &str, path: &str) -> Result<Secret, StoreErrorKind> {
    match String::from_utf8(file(key, path)?) {
        Ok(text) => Ok(Secret::new(text.trim_end_matches(['\r', '\n']))),
        Err(_) => refuse(format!("{key}={path} is not UTF-8")),
    }
}

fn decode(text: &str) -> Result<String, StoreErrorKind> {
    match percent_decode_str(text).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => refuse("an address is UTF-8 when it is percent-decoded".into()),
    }
}

fn pair(text: &str) -> (&str, &str) {
    text.split_once('=').unwrap_or((text, ""))
}

fn duration(key: &str, value: &str) -> Result<Duration, StoreErrorKind> {
    humantime::parse_duration(value)
        .or_else(|_| refuse(format!("{key}={value} is no duration like 500ms or 2s")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(address: &str) -> String {
        parse(address).map(|config| format!("{config:?} was taken")).unwrap_or_else(|kind| kind.to_string())
    }

    #[test]
    fn an_address_says_which_servers_and_shows_no_secret() {
        for (address, shown) in [
            ("redis://h", "redis://h:6379/0"),
            ("redis://:canary@h:7000/3?prefix=app:", "redis://h:7000/3"),
            ("rediss://u%40x:c%61nary@[::1]:7000", "rediss://[::1]:7000/0"),
            ("redis+unix:///run/re%20dis.sock?db=2", "redis+unix:///run/re dis.sock?db=2"),
            (
                "redis+sentinel://u:canary@a,b:7/main/4?sentinel_password=canary",
                "redis+sentinel://a:26379,b:7/main/4",
            ),
            ("rediss+cluster://a,b:7", "rediss+cluster://a:6379,b:7"),
            ("valkey://h/0", "redis://h:6379/0"),
        ] {
            let config = parse(address).unwrap();
            assert_eq!(&*config.address(), shown);
            assert!(
                !format!("{config:?} {:?} {:?}", config.login, config.target).contains("canary"),
                "{address}"
            );
        }
        let config =
            parse("redis://u%40x:c%61nary@h?timeout=2s&wait=1&wait_timeout=50ms&protocol=resp3").unwrap();
        assert_eq!(config.login.user.as_deref(), Some("u@x"));
        assert_eq!(config.login.password.as_ref().map(Secret::reveal), Some("canary"));
        assert_eq!(config.connect_timeout, Duration::from_secs(2));
        assert!(config.resp3 && config.wait.is_some_and(|wait| wait.replicas == 1));
    }

    #[test]
    fn what_cannot_work_is_refused_with_the_reason_and_no_secret() {
        for (address, reason) in [
            ("leases.db", "no address"),
            ("http://u:canary@h", "no scheme"),
            ("redis://", "names no host"),
            ("redis://u:canary@", "names no host"),
            ("redis://h:0", "1 to 65535"),
            ("redis://h:canary", "1 to 65535"),
            ("redis://h/x", "a database is a number"),
            ("redis://h/1/2", "at most one"),
            ("redis://a,b", "several hosts"),
            ("redis://h?prefix=a{b", "no braces"),
            ("redis://h?prefix=", "1 to 100"),
            ("redis://h?passwrod=canary", "no parameter"),
            ("redis://h?timeout=soon", "no duration"),
            ("redis://h?timeout=2m", "out of range"),
            ("redis://h?wait=0", "not to wait"),
            ("redis://h?ca=/x", "rediss://"),
            ("rediss://h?ca=/no/such/file", "cannot be read"),
            ("rediss://h?cert=/dev/null", "go together"),
            ("redis://h?password_env=NO_SUCH_VARIABLE_HERE", "no such environment variable"),
            ("redis://h?sentinel_user=x", "redis+sentinel"),
            ("redis+sentinel://a", "name of the primary"),
            ("redis+cluster://a/1", "no databases"),
            ("redis+cluster://a?db=1", "no databases"),
            ("redis+unix://run/x", "absolute path"),
        ] {
            let problem = problem(address);
            assert!(problem.contains(reason), "{address}: {problem}");
            assert!(!problem.contains("canary"), "{address}: {problem}");
        }
    }
}
