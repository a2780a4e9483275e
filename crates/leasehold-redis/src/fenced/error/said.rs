//! What the server's words mean. They reach us in two ways: as the refusal of a whole script, with a code, and as what a
//! command within it was told, which Redis 6.2 puts behind `@user_script: 1: -`.

use super::FencedError;
use crate::error::is_denial_in_script;
use redis::RedisError;

/// An error that answers the whole request, or that came instead of an answer.
pub(super) fn by(error: RedisError) -> FencedError {
    match error.code() {
        Some(code) => {
            let said = format!("{code} {}", error.detail().unwrap_or_default());
            known(plain(&said)).unwrap_or(FencedError::Redis(error))
        }
        None if error.is_connection_dropped() || error.is_timeout() || error.is_io_error() => {
            if error.is_connection_refusal() {
                FencedError::Redis(error)
            } else {
                FencedError::Unknown(error)
            }
        }
        None => FencedError::Redis(error),
    }
}

/// What our own commands on the mark were told.
pub(super) fn of_the_mark(told: &str, mark: &str) -> FencedError {
    match known(plain(told)) {
        Some(FencedError::WrongType { .. }) => FencedError::Damaged {
            mark: mark.to_owned(),
            problem: "it holds another kind of value".to_owned(),
        },
        Some(known) => known,
        None => FencedError::Damaged { mark: mark.to_owned(), problem: plain(told).to_owned() },
    }
}

/// What the user's command or script was told, or said itself.
pub(super) fn of_the_work(told: &str) -> FencedError {
    let said = plain(told);
    known(said).unwrap_or_else(|| FencedError::Script { said: said.to_owned() })
}

/// An error that is called by its name.
fn known(said: &str) -> Option<FencedError> {
    let code = said.split(' ').next().unwrap_or_default();
    let said = said.to_owned();
    Some(match code {
        "WRONGTYPE" => FencedError::WrongType { said },
        "OOM" => FencedError::Full { said },
        "READONLY" | "MISCONF" | "NOREPLICAS" => FencedError::NotWriting { said },
        "NOPERM" | "NOAUTH" | "WRONGPASS" => FencedError::Denied { said },
        _ if is_denial_in_script(&said) => FencedError::Denied { said },
        // It is no Lua at all.
        _ if said.contains("Error compiling script") => FencedError::Script { said },
        _ => return None,
    })
}

/// The words without where in the script they were said.
fn plain(told: &str) -> &str {
    let told = told.trim();
    let inner = match told.rsplit_once("@user_script: ") {
        Some((_, placed)) => placed.split_once(": ").map_or(placed, |(_, said)| said),
        None => told,
    };
    inner.strip_prefix('-').unwrap_or(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_same_wherever_in_a_script_they_were_said() {
        for told in [
            "OOM no",
            "-OOM no",
            "@user_script: 12: -OOM no\r\n",
            "ERR Error running script (call to f_1): @user_script: 3: -OOM no",
        ] {
            assert_eq!(of_the_work(told), FencedError::Full { said: "OOM no".to_owned() }, "{told}");
        }
        let denied = "@user_script: 1: The user executing the script can't run this command or subcommand";
        assert!(matches!(of_the_mark(denied, "m"), FencedError::Denied { .. }));
        assert!(matches!(of_the_mark("WRONGTYPE x", "m"), FencedError::Damaged { .. }));
        assert!(matches!(of_the_work("WRONGTYPE x"), FencedError::WrongType { .. }));
        let own = FencedError::Script { said: "user_script:1: mine".to_owned() };
        assert_eq!(of_the_work("user_script:1: mine"), own);
    }
}
