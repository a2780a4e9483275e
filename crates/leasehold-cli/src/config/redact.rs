//! A store's URL as it may be shown.

use std::borrow::Cow;

/// Parameters of a URL's query whose values are secrets, by a part of their names.
const SECRET_PARAMETERS: [&str; 5] = ["pass", "secret", "token", "auth", "key"];

/// A URL without its password and without secret parameters.
///
/// It works on any text, well-formed or not, since what is shown in an error is mostly not well-formed: whatever stands
/// between the first colon after `://` and the last `@` is taken for a password. Rather too much is hidden than a part
/// of a password that holds a slash or an `@`.
#[must_use]
pub fn redacted(url: &str) -> Cow<'_, str> {
    let shown = without_password(url);
    match shown.split_once('?') {
        Some((head, query)) if query.split(['&', '#']).any(is_secret) => {
            let query: Vec<_> = query
                .split('&')
                .map(|pair| match pair.split_once('=') {
                    Some((name, _)) if is_secret(pair) => format!("{name}=***").into(),
                    _ => Cow::Borrowed(pair),
                })
                .collect();
            format!("{head}?{}", query.join("&")).into()
        }
        _ => shown,
    }
}

fn without_password(url: &str) -> Cow<'_, str> {
    let Some(start) = url.find("://").map(|at| at + 3) else { return url.into() };
    let Some(end) = url.rfind('@').filter(|end| *end >= start) else { return url.into() };
    match url[start..end].find(':') {
        Some(colon) if start + colon + 1 < end => {
            format!("{}***{}", &url[..=start + colon], &url[end..]).into()
        }
        _ => url.into(),
    }
}

fn is_secret(pair: &str) -> bool {
    pair.split_once('=').is_some_and(|(name, value)| {
        let name = name.to_ascii_lowercase();
        !value.is_empty() && SECRET_PARAMETERS.iter().any(|secret| name.contains(secret))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_secret_is_shown_as_it_is() {
        for url in [
            "memory:",
            "sqlite:/var/lib/x.db",
            "redis://host:6379/0",
            "postgres://user@host/db?sslmode=require",
            "redis://:@host",
            "",
        ] {
            assert_eq!(redacted(url), url);
        }
    }

    #[test]
    fn no_part_of_a_password_is_shown() {
        for (url, shown) in [
            ("redis://:hunter2@host:6379/0", "redis://:***@host:6379/0"),
            ("postgres://u:hunter2@host/db", "postgres://u:***@host/db"),
            ("postgres://u:hun/ter@2@host/db", "postgres://u:***@host/db"),
            ("postgres://u:hun?ter#2@host/db", "postgres://u:***@host/db"),
            ("postgres://host/db?user=u&password=hunter2&a=b", "postgres://host/db?user=u&password=***&a=b"),
            ("postgres://host/db?SSLPassword=hunter2", "postgres://host/db?SSLPassword=***"),
            ("x://u:p@ss@h?auth_token=hunter2", "x://u:***@h?auth_token=***"),
        ] {
            assert_eq!(redacted(url), shown);
            assert_eq!(redacted(shown), shown, "a second time");
        }
    }
}
