//! Reading an address: the parts that PostgreSQL's own clients know, and ours.

use super::{Authority, Config, Identity, Schema, Secret, Tls, Trust, file, refuse};
use leasehold_core::StoreErrorKind;
use percent_encoding::percent_decode_str;
use std::{path::Path, time::Duration};
use tokio_postgres::config::TargetSessionAttrs;

/// What we read ourselves.
const OURS: &str = "schema, connections, response_timeout, witness_poll, migrate, password_env, password_file, sslmode, \
                    sslrootcert, sslcert, sslkey";
/// What is handed to the client as it is.
const THEIRS: [&str; 15] = [
    "host",
    "hostaddr",
    "port",
    "user",
    "password",
    "dbname",
    "options",
    "application_name",
    "target_session_attrs",
    "channel_binding",
    "load_balance_hosts",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
];
/// Where a server listens on this host, unless it is told otherwise.
const SOCKETS: &str = "/var/run/postgresql";

/// Reads an address, and from the environment what it leaves open.
pub(super) fn parse(address: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Config, StoreErrorKind> {
    // Nothing behind the scheme is ever shown: a password may stand anywhere in an address that is wrong.
    let Some((scheme, rest)) = address.split_once("://") else {
        return refuse(
            "this is no address of a postgres store: write postgres://USER@HOST:PORT/DATABASE".into(),
        );
    };
    if !Config::SCHEMES.contains(&scheme) {
        return refuse(format!(
            "{scheme}:// is no scheme of a postgres store; it knows postgres and postgresql"
        ));
    }
    let (body, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut parts = Parts::default();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if THEIRS.contains(&key) {
            parts.theirs.push(pair);
        } else {
            parts.ours.push((key.to_owned(), decode(value)?));
        }
    }
    let server = format!("postgres://{body}?{}", parts.theirs.join("&"));
    // What the client says of it may quote it.
    let server = server.parse::<tokio_postgres::Config>().or_else(|_| {
        refuse(
            "the address cannot be read: write postgres://USER:PASSWORD@HOST:PORT/DATABASE?PARAMETERS, and percent-encode \
             what is special in a user, a password or the path of a socket"
                .into(),
        )
    })?;
    let mut config = Config {
        server,
        tls: Tls { trust: Trust::Prefer, authority: Authority::System, identity: None },
        schema: Schema::default(),
        connect_timeout: Duration::from_secs(2),
        response_timeout: Duration::from_secs(2),
        connections: 4,
        witness_poll: Duration::from_millis(10),
        migrates: false,
    };
    for (key, variable) in [
        ("sslmode", "PGSSLMODE"),
        ("sslrootcert", "PGSSLROOTCERT"),
        ("sslcert", "PGSSLCERT"),
        ("sslkey", "PGSSLKEY"),
        ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ] {
        if let Some(value) = env(variable).filter(|_| !parts.ours.iter().any(|(known, _)| known == key)) {
            parts.ours.push((key.to_owned(), value));
        }
    }
    config = parts.apply(config)?;
    complete(&mut config.server, env)?;
    Ok(config)
}

#[derive(Default)]
struct Parts<'a> {
    theirs: Vec<&'a str>,
    ours: Vec<(String, String)>,
}

impl Parts<'_> {
    fn apply(self, mut config: Config) -> Result<Config, StoreErrorKind> {
        let (mut cert, mut key_file, mut trust, mut has_roots) = (None, None, None, false);
        for (key, value) in self.ours {
            match &*key {
                "schema" => config = config.with_schema(&value)?,
                "connections" => {
                    let Ok(connections) = value.parse() else {
                        return refuse("connections needs a number".into());
                    };
                    config = config.with_connections(connections)?;
                }
                // Whole seconds, as elsewhere; 0 is no limit elsewhere, and here the longest.
                "connect_timeout" => config = config.with_connect_timeout(seconds(&key, &value)?)?,
                "response_timeout" => config = config.with_response_timeout(duration(&key, &value)?)?,
                "witness_poll" => config = config.with_witness_poll(duration(&key, &value)?)?,
                "migrate" => {
                    config.migrates = match &*value {
                        "true" | "yes" | "1" => true,
                        "false" | "no" | "0" => false,
                        _ => return refuse("migrate is true or false".into()),
                    }
                }
                "password_env" => {
                    let Ok(password) = std::env::var(&value) else {
                        return refuse(format!(
                            "{key}={value}: there is no such environment variable, or it is not UTF-8"
                        ));
                    };
                    config.server.password(password);
                }
                "password_file" => _ = config.server.password(text(&key, &value)?.reveal()),
                "sslmode" => trust = Some(Trust::parse(&value)?),
                "sslrootcert" if value == "system" => {
                    (config.tls.authority, has_roots) = (Authority::System, true);
                }
                "sslrootcert" => {
                    (config.tls.authority, has_roots) = (Authority::Pem(file(&key, &value)?), true);
                }
                "sslcert" => cert = Some(file(&key, &value)?),
                "sslkey" => key_file = Some(text(&key, &value)?),
                _ => {
                    return refuse(format!(
                        "a postgres store has no parameter {key:?}: it knows {OURS}, connect_timeout, {}",
                        THEIRS.join(", ")
                    ));
                }
            }
        }
        config.tls.trust = match trust {
            // As PostgreSQL's own clients take it: who names an authority wants it to be checked.
            Some(Trust::Require) | None if has_roots => Trust::VerifyCa,
            Some(trust) => trust,
            None => Trust::Prefer,
        };
        config.tls.identity = match (cert, key_file) {
            (Some(certificate), Some(key)) => Some(Identity { certificate, key }),
            (None, None) => None,
            _ => return refuse("sslcert and sslkey go together".into()),
        };
        Ok(config)
    }
}

/// Fills in what the address leaves open.
fn complete(
    server: &mut tokio_postgres::Config,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<(), StoreErrorKind> {
    if server.get_hosts().is_empty() && server.get_hostaddrs().is_empty() {
        let hosts = env("PGHOST").unwrap_or_else(|| {
            let socket = Path::new(SOCKETS).exists();
            if socket { SOCKETS } else { "localhost" }.to_owned()
        });
        for host in hosts.split(',') {
            server.host(host);
        }
    }
    if server.get_ports().is_empty()
        && let Some(ports) = env("PGPORT")
    {
        for port in ports.split(',') {
            let Ok(port) = port.parse() else { return refuse("PGPORT is no port".into()) };
            server.port(port);
        }
    }
    if server.get_user().is_none()
        && let Some(user) = env("PGUSER").or_else(|| env("USER"))
    {
        server.user(user);
    }
    if server.get_password().is_none()
        && let Some(password) = env("PGPASSWORD")
    {
        server.password(password);
    }
    if server.get_dbname().is_none()
        && let Some(database) = env("PGDATABASE").or_else(|| server.get_user().map(str::to_owned))
    {
        server.dbname(database);
    }
    if server.get_application_name().is_none() {
        server.application_name(env("PGAPPNAME").unwrap_or_else(|| "leasehold".to_owned()));
    }
    if server.get_options().is_none()
        && let Some(options) = env("PGOPTIONS")
    {
        server.options(options);
    }
    if server.get_target_session_attrs() == TargetSessionAttrs::Any {
        // A standby keeps no leases. Of several hosts, the one that does is found.
        server.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    Ok(())
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

fn seconds(key: &str, value: &str) -> Result<Duration, StoreErrorKind> {
    match value.parse::<u64>() {
        Ok(0) => Ok(super::MAX_PATIENCE),
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => duration(key, value),
    }
}

fn duration(key: &str, value: &str) -> Result<Duration, StoreErrorKind> {
    humantime::parse_duration(value)
        .or_else(|_| refuse(format!("{key}={value} is no duration like 500ms or 2s")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(address: &str, env: &[(&str, &str)]) -> Result<Config, StoreErrorKind> {
        let find =
            |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        parse(address, &find)
    }

    fn problem(address: &str) -> String {
        read(address, &[])
            .map(|config| format!("{config:?} was taken"))
            .unwrap_or_else(|kind| kind.to_string())
    }

    #[test]
    fn an_address_says_which_server_and_shows_no_secret() {
        for (address, shown) in [
            ("postgres://u:canary@h/app", "postgres://h:5432/app"),
            ("postgresql://u:c%61nary@h:7000/app?schema=jobs", "postgres://h:7000/app?schema=jobs"),
            ("postgres://u:canary@a:1,b:2/app", "postgres://a:1,b:2/app"),
            ("postgres://u@%2Frun%2Fpg:7/app?password=canary", "postgres:///run/pg:7/app"),
            ("postgres:///app?host=/run/pg&user=u", "postgres:///run/pg:5432/app"),
            ("postgres://u@h", "postgres://h:5432/u"),
        ] {
            let config = read(address, &[]).unwrap();
            assert_eq!(&*config.address(), shown);
            assert!(!format!("{config:?}").contains("canary"), "{address}");
        }
        let config =
            read("postgres://u:c%61nary@h?connect_timeout=3&response_timeout=50ms&migrate=true", &[])
                .unwrap();
        assert_eq!(config.server.get_password(), Some(&b"canary"[..]));
        assert_eq!(config.connect_timeout, Duration::from_secs(3));
        assert_eq!(config.response_timeout, Duration::from_millis(50));
        assert!(config.migrates);
    }

    #[test]
    fn the_environment_fills_in_what_the_address_leaves_open() {
        let env = [
            ("PGHOST", "a,b"),
            ("PGPORT", "7,8"),
            ("PGUSER", "me"),
            ("PGPASSWORD", "canary"),
            ("PGDATABASE", "app"),
            ("PGSSLMODE", "verify-full"),
            ("PGCONNECT_TIMEOUT", "7"),
        ];
        let config = read("postgres://", &env).unwrap();
        assert_eq!(&*config.address(), "postgres://a:7,b:8/app");
        assert_eq!((config.server.get_user(), config.tls.trust), (Some("me"), Trust::VerifyFull));
        assert_eq!(config.connect_timeout, Duration::from_secs(7));
        let config = read("postgres://you:own@h:1/db?sslmode=disable", &env).unwrap();
        assert_eq!(&*config.address(), "postgres://h:1/db");
        assert_eq!(config.server.get_password(), Some(&b"own"[..]));
        assert_eq!(config.tls.trust, Trust::Disable);
    }

    #[test]
    fn who_names_an_authority_has_it_checked() {
        for (address, trust) in [
            ("postgres://h", Trust::Prefer),
            ("postgres://h?sslmode=require", Trust::Require),
            ("postgres://h?sslmode=require&sslrootcert=system", Trust::VerifyCa),
            ("postgres://h?sslrootcert=system&sslmode=verify-full", Trust::VerifyFull),
        ] {
            assert_eq!(read(address, &[]).unwrap().tls.trust, trust, "{address}");
        }
    }

    #[test]
    fn what_cannot_work_is_refused_with_the_reason_and_no_secret() {
        for (address, reason) in [
            ("leases.db", "no address"),
            ("mysql://u:canary@h", "no scheme"),
            ("postgres://u:canary@h:port/db", "cannot be read"),
            ("postgres://u:canary@h?passwrod=canary", "no parameter"),
            ("postgres://u:canary@h?schema=a-b", "does not do"),
            ("postgres://u:canary@h?sslmode=maybe", "sslmode is"),
            ("postgres://u:canary@h?sslmode=allow", "prefer or require"),
            ("postgres://h?response_timeout=soon", "no duration"),
            ("postgres://h?response_timeout=2m", "out of range"),
            ("postgres://h?connections=0", "1 to 64"),
            ("postgres://h?migrate=perhaps", "true or false"),
            ("postgres://h?sslcert=/dev/null", "go together"),
            ("postgres://h?sslrootcert=/no/such/file", "cannot be read"),
            ("postgres://h?password_env=NO_SUCH_VARIABLE_HERE", "no such environment variable"),
        ] {
            let problem = problem(address);
            assert!(problem.contains(reason), "{address}: {problem}");
            assert!(!problem.contains("canary"), "{address}: {problem}");
        }
    }
}
